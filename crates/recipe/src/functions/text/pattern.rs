//! Regular expressions in bounded memory and time.
//!
//! Patterns are limited before they are compiled, because compilation cannot be interrupted. A search of a long text
//! with a large pattern can be slow, so it runs step by step on the lazy DFA and checks the call's budget at intervals.

use std::sync::Arc;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::hybrid::{CacheError, LazyStateID};
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::captures::Captures;
use regex_automata::util::iter::Searcher;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, Match, MatchError, MatchKind, PatternID, Span};
use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::Hir;

use super::pike;
use crate::budget::{CallBudget, Claim};
use crate::function::{Call, Fault};

/// The syntax of patterns, for all functions that take one.
pub(super) const REGEX: &str = "a regular expression in Rust's syntax, at most 16 KiB, with Unicode, \
    without look-around and back-references";

/// The maximum length of all patterns of one call, in bytes.
const LENGTH_MOST: usize = 16 << 10;

/// The maximum number of character classes in all patterns of one call, such as `\w` and `[^a]`.
const CLASSES_MOST: usize = 250;

/// The maximum size of a compiled pattern in bytes.
const COMPILED_MOST: usize = 2 << 20;

/// The memory of a compiled pattern with its caches, as a multiple of its automaton.
const COMPILED_FACTOR: u64 = 16;

/// The memory to build an automaton, as a multiple of its size: more than it takes, and less than the pattern is charged
/// for once it is compiled.
const BUILD_FACTOR: u64 = 8;

/// An automaton up to this size is built without a look at the grant.
const BUILD_LEAST: usize = 64 << 10;

/// The memory of a parsed pattern per byte of its text, and per character class, which may have thousands of ranges if it
/// ignores case.
const PARSED_PER_BYTE: u64 = 320;
const PARSED_PER_CLASS: u64 = 64 << 10;

/// The size of one lazy DFA cache in bytes, and as a multiple of the automaton.
const CACHE_LEAST: usize = 64 << 10;
const CACHE_MOST: usize = 1 << 20;
const CACHE_FACTOR: usize = 8;

/// Searches with at most this product of states and text length run without interruption.
const SHORT: usize = 4 << 20;

/// The product of states and text length between two checks of the budget, of a search in steps.
const BETWEEN_CHECKS: usize = 1 << 20;

/// The memory for the groups of one match that is not charged, in bytes. A search that takes more is charged for it.
const GROUPS_LEAST: usize = 256 << 10;

/// The work of a search in addition to its text, in bytes of text.
const SEARCH: usize = 16;

/// A compiled pattern.
pub(in crate::functions) struct Pattern {
    regex: Regex,
    /// The number of states of the automaton, which bounds the steps per byte of text.
    states: usize,
    /// The size of one lazy DFA cache in bytes.
    cache: usize,
    /// Finds the texts that every match begins with, much faster than a search in steps.
    prefilter: Option<Prefilter>,
    forward: DFA,
    reverse: DFA,
}

/// The caches for the searches of one call, once a search is long.
#[derive(Default)]
pub(in crate::functions) struct Caches(Option<SteppingCaches>);

struct SteppingCaches {
    forward: Cache,
    reverse: Cache,
    _claim: Claim,
}

/// Compiles the patterns of one call, which are given in one parameter. The bounds are for all of them together.
pub(in crate::functions) struct PatternCompiler<'a> {
    call: &'a Call<'a>,
    name: &'a str,
    /// The total length of the patterns so far.
    bytes: usize,
    /// The number of character classes in them.
    classes: usize,
}

impl<'a> PatternCompiler<'a> {
    pub(in crate::functions) fn new(call: &'a Call<'a>, name: &'a str) -> PatternCompiler<'a> {
        PatternCompiler { call, name, bytes: 0, classes: 0 }
    }

    /// Checks the syntax of a pattern.
    pub(super) fn check(&mut self, text: &str) -> Result<(), Fault> {
        self.parse(text, &mut Claim::new(self.call.budget)).map(|_| ())
    }

    /// Parses the next pattern within the bounds. `claim` holds the memory of the result.
    fn parse(&mut self, text: &str, claim: &mut Claim) -> Result<Hir, Fault> {
        self.call.budget.check()?;
        let whose = if self.bytes == 0 { "the pattern has" } else { "the patterns have" };
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > LENGTH_MOST {
            return Err(self.wrong(format!("{whose} {} bytes; there may be {LENGTH_MOST}", self.bytes)));
        }
        let texts = text.len() as u64 * PARSED_PER_BYTE;
        claim.grow_to(texts)?;
        let parsed = ast::parse::ParserBuilder::new().nest_limit(100).build().parse(text);
        let parsed = parsed.map_err(|error| self.wrong(error.to_string()))?;
        let own = ast::visit(&parsed, Classes(0)).unwrap_or(usize::MAX);
        let classes = self.classes.saturating_add(own);
        // Translating more classes would be slow.
        if classes > CLASSES_MOST {
            return Err(self.wrong(format!(
                "{whose} {classes} character classes, such as `\\w` and `[^a]`; there may be {CLASSES_MOST}"
            )));
        }
        self.classes = classes;
        claim.grow_to(texts + own as u64 * PARSED_PER_CLASS)?;
        let config = syntax::Config::new();
        let mut translator =
            regex_syntax::hir::translate::TranslatorBuilder::new().utf8(config.get_utf8()).build();
        translator.translate(text, &parsed).map_err(|error| self.wrong(error.to_string()))
    }

    fn wrong(&self, problem: String) -> Fault {
        Fault::param(self.name, problem)
    }

    /// Compiles a pattern, and claims its memory.
    pub(in crate::functions) fn compile(&mut self, text: &str) -> Result<Pattern, Fault> {
        let mut parsing = Claim::new(self.call.budget);
        let hir = self.parse(text, &mut parsing)?;
        let (forward, reverse) = (self.build(&hir, false)?, self.build(&hir, true)?);
        let bytes = forward.memory_usage() + reverse.memory_usage();
        let cache = bytes.saturating_mul(CACHE_FACTOR).clamp(CACHE_LEAST, CACHE_MOST);
        self.call
            .budget
            .claim((bytes as u64).saturating_mul(COMPILED_FACTOR).saturating_add(4 * cache as u64))?;
        let config = Regex::config()
            .nfa_size_limit(Some(COMPILED_MOST))
            .onepass_size_limit(Some(COMPILED_MOST / 2))
            .dfa_size_limit(Some(COMPILED_MOST / 2))
            .hybrid_cache_capacity(cache)
            // Its stack may grow to dozens of megabytes.
            .backtrack(false);
        let regex = Regex::builder().configure(config).build_from_hir(&hir).map_err(|_| self.large())?;
        let states = forward.states().len();
        let dfa = |nfa, kind| stepping(nfa, kind, cache).map_err(|problem| self.wrong(problem));
        Ok(Pattern {
            regex,
            states,
            cache,
            prefilter: Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &hir),
            forward: dfa(forward, MatchKind::LeftmostFirst)?,
            reverse: dfa(reverse, MatchKind::All)?,
        })
    }

    /// Builds an automaton, as large as the grant allows.
    fn build(&self, hir: &Hir, reverse: bool) -> Result<NFA, Fault> {
        let budget = self.call.budget;
        let (granted, claimed) = (budget.granted(), budget.claimed());
        let allowed = granted.saturating_sub(claimed) / BUILD_FACTOR;
        let most = usize::try_from(allowed).unwrap_or(usize::MAX).clamp(BUILD_LEAST, COMPILED_MOST);
        // Groups are searched forward.
        let captures = if reverse { thompson::WhichCaptures::None } else { thompson::WhichCaptures::All };
        let config =
            thompson::Config::new().reverse(reverse).which_captures(captures).nfa_size_limit(Some(most));
        let built = thompson::Compiler::new().configure(config).build_from_hir(hir);
        built.map_err(|error| match error.size_limit() {
            Some(_) if most < COMPILED_MOST => {
                let next = most.saturating_mul(4).min(COMPILED_MOST) as u64;
                Fault::Memory { needed: claimed + next * BUILD_FACTOR, granted }
            }
            _ => self.large(),
        })
    }

    fn large(&self) -> Fault {
        self.wrong(format!("the compiled pattern takes more than {COMPILED_MOST} bytes; repeat less"))
    }
}

impl Pattern {
    /// The pattern of a parameter.
    pub(super) fn of(call: &Call<'_>, name: &str) -> Result<Pattern, Fault> {
        PatternCompiler::new(call, name).compile(call.text(name)?)
    }

    /// Whether the text contains a match.
    pub(in crate::functions) fn is_match(
        &self,
        caches: &mut Caches,
        text: &str,
        budget: &Arc<CallBudget>,
    ) -> Result<bool, Fault> {
        if self.is_short(text.len()) {
            self.count(text.len(), budget)?;
            return Ok(self.regex.is_match(text));
        }
        Ok(self.find(caches, &Input::new(text).earliest(true), budget)?.is_some())
    }

    /// Calls `each` with every match, in order.
    pub(super) fn matches(
        &self,
        text: &str,
        budget: &Arc<CallBudget>,
        mut each: impl FnMut(Span) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut caches = Caches::default();
        let mut searcher = Searcher::new(Input::new(text));
        loop {
            budget.check()?;
            let mut fault = None;
            let found = searcher.try_advance(|input| {
                self.find(&mut caches, input, budget).map_err(|found| {
                    fault = Some(found);
                    MatchError::gave_up(input.start())
                })
            });
            match (found, fault) {
                (_, Some(fault)) => return Err(fault),
                (Ok(Some(found)), None) => each(found.span())?,
                (Ok(None) | Err(_), None) => return Ok(()),
            }
        }
    }

    /// The groups of a match.
    pub(super) fn groups(&self, text: &str, span: Span, budget: &Arc<CallBudget>) -> Result<Captures, Fault> {
        let mut groups = self.regex.create_captures();
        let input = Input::new(text).span(span).anchored(Anchored::Yes);
        // The regex may keep two lists of all states, each with all groups.
        let table = self.states.saturating_mul(2 * size_of_val(groups.slots()));
        if self.is_short(span.len()) && table <= GROUPS_LEAST {
            self.regex.captures(input, &mut groups);
        } else if pike::search(self.forward.get_nfa(), &input, groups.slots_mut(), budget)? {
            groups.set_pattern(Some(PatternID::ZERO));
        }
        Ok(groups)
    }

    fn is_short(&self, len: usize) -> bool {
        self.states.saturating_mul(len) <= SHORT
    }

    /// Counts the work of a short search.
    fn count(&self, len: usize, budget: &CallBudget) -> Result<(), Fault> {
        budget.work(self.states.saturating_mul(len + SEARCH) as u64)
    }

    /// The first match in the input's span.
    fn find(
        &self,
        caches: &mut Caches,
        input: &Input<'_>,
        budget: &Arc<CallBudget>,
    ) -> Result<Option<Match>, Fault> {
        if self.is_short(input.get_span().len()) {
            self.count(input.get_span().len(), budget)?;
            return Ok(self.regex.find(input.clone()));
        }
        let caches = match &mut caches.0 {
            Some(caches) => caches,
            none => none.insert(self.caches(budget)?),
        };
        let mut input = input.clone();
        if let Some(prefilter) = &self.prefilter {
            let Some(first) = prefilter.find(input.haystack(), input.get_span()) else { return Ok(None) };
            input.set_start(first.start);
        }
        while let Some(span) = self.find_by_steps(caches, &input, budget)? {
            let splits = |at: usize| at < input.haystack().len() && (input.haystack()[at] as i8) < -0x40;
            if span.is_empty() && splits(span.start) {
                // An empty match inside a character does not count.
                input.set_start(span.start + 1);
                continue;
            }
            return Ok(Some(Match::new(PatternID::ZERO, span)));
        }
        Ok(None)
    }

    /// Creates the caches for searches in steps.
    fn caches(&self, budget: &Arc<CallBudget>) -> Result<SteppingCaches, Fault> {
        let mut claim = Claim::new(budget);
        claim.grow_to(2 * self.cache as u64)?;
        let (forward, reverse) = (self.forward.create_cache(), self.reverse.create_cache());
        Ok(SteppingCaches { forward, reverse, _claim: claim })
    }

    fn find_by_steps(
        &self,
        caches: &mut SteppingCaches,
        input: &Input<'_>,
        budget: &Arc<CallBudget>,
    ) -> Result<Option<Span>, Fault> {
        let end = match self.find_end(&mut caches.forward, input, budget) {
            Ok(end) => end,
            Err(SearchFailure::Fault(fault)) => return Err(fault),
            Err(SearchFailure::Automaton) => return self.find_otherwise(input, budget),
        };
        let Some(end) = end else { return Ok(None) };
        let before = input.clone().span(input.start()..end).anchored(Anchored::Yes);
        match self.find_start(&mut caches.reverse, &before, budget) {
            Ok(start) => Ok(Some(Span { start: start.unwrap_or(end), end })),
            Err(SearchFailure::Fault(fault)) => Err(fault),
            Err(SearchFailure::Automaton) => self.find_otherwise(input, budget),
        }
    }

    /// Searches without the lazy DFA, which does not support Unicode word boundaries next to characters beyond ASCII.
    fn find_otherwise(&self, input: &Input<'_>, budget: &Arc<CallBudget>) -> Result<Option<Span>, Fault> {
        let mut slots = [None; 2];
        pike::search(self.forward.get_nfa(), input, &mut slots, budget)?;
        let [start, end] = slots.map(|slot| slot.map(NonMaxUsize::get));
        Ok(start.zip(end).map(|(start, end)| Span { start, end }))
    }

    /// Bytes between two checks of the budget less 1, as a mask.
    fn check_mask(&self) -> usize {
        (1 << (BETWEEN_CHECKS / self.states).clamp(16, 16 << 10).ilog2()) - 1
    }

    /// The end of the first match.
    fn find_end(
        &self,
        cache: &mut Cache,
        input: &Input<'_>,
        budget: &CallBudget,
    ) -> Result<Option<usize>, SearchFailure> {
        let mut state = self.forward.start_state_forward(cache, input)?;
        let (mut end, mask) = (None, self.check_mask());
        for (at, byte) in (input.start()..).zip(&input.haystack()[input.get_range()]) {
            if at & mask == 0 {
                budget.check().map_err(SearchFailure::Fault)?;
            }
            state = self.forward.next_state(cache, state, *byte)?;
            if state.is_tagged() {
                match kind(state)? {
                    // A match is seen one byte after its end.
                    Kind::Match => end = Some(at),
                    Kind::Dead => return Ok(end),
                    Kind::Other => continue,
                }
                if input.get_earliest() {
                    return Ok(end);
                }
            }
        }
        state = match input.haystack().get(input.end()) {
            Some(byte) => self.forward.next_state(cache, state, *byte)?,
            None => self.forward.next_eoi_state(cache, state)?,
        };
        Ok(if state.is_match() { Some(input.end()) } else { end })
    }

    /// The start of the match that ends at the end of the input's span.
    fn find_start(
        &self,
        cache: &mut Cache,
        input: &Input<'_>,
        budget: &CallBudget,
    ) -> Result<Option<usize>, SearchFailure> {
        let mut state = self.reverse.start_state_reverse(cache, input)?;
        let (mut start, mask) = (None, self.check_mask());
        for at in input.get_range().rev() {
            if at & mask == 0 {
                budget.check().map_err(SearchFailure::Fault)?;
            }
            state = self.reverse.next_state(cache, state, input.haystack()[at])?;
            if state.is_tagged() {
                match kind(state)? {
                    Kind::Match => start = Some(at + 1),
                    Kind::Dead => return Ok(start),
                    Kind::Other => {}
                }
            }
        }
        state = match input.start().checked_sub(1) {
            Some(before) => self.reverse.next_state(cache, state, input.haystack()[before])?,
            None => self.reverse.next_eoi_state(cache, state)?,
        };
        Ok(if state.is_match() { Some(input.start()) } else { start })
    }
}

/// The reason why a search in steps cannot continue.
enum SearchFailure {
    Fault(Fault),
    /// The lazy DFA cannot decide.
    Automaton,
}

impl From<CacheError> for SearchFailure {
    fn from(_: CacheError) -> SearchFailure {
        SearchFailure::Automaton
    }
}

impl From<MatchError> for SearchFailure {
    fn from(_: MatchError) -> SearchFailure {
        SearchFailure::Automaton
    }
}

enum Kind {
    Match,
    Dead,
    Other,
}

fn kind(state: LazyStateID) -> Result<Kind, SearchFailure> {
    match (state.is_match(), state.is_dead(), state.is_quit()) {
        (true, ..) => Ok(Kind::Match),
        (_, true, _) => Ok(Kind::Dead),
        (_, _, true) => Err(SearchFailure::Automaton),
        _ => Ok(Kind::Other),
    }
}

fn stepping(nfa: NFA, kind: MatchKind, cache: usize) -> Result<DFA, String> {
    let config = DFA::config()
        .match_kind(kind)
        .unicode_word_boundary(true)
        .cache_capacity(cache)
        .skip_cache_capacity_check(true);
    DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| error.to_string())
}

/// Counts character classes.
struct Classes(usize);

impl ast::Visitor for Classes {
    type Output = usize;
    type Err = ();

    fn finish(self) -> Result<usize, ()> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, part: &Ast) -> Result<(), ()> {
        self.0 +=
            usize::from(matches!(part, Ast::ClassUnicode(_) | Ast::ClassPerl(_) | Ast::ClassBracketed(_)));
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ast::ClassSetItem) -> Result<(), ()> {
        use ast::ClassSetItem::{Bracketed, Perl, Unicode};
        self.0 += usize::from(matches!(item, Unicode(_) | Perl(_) | Bracketed(_)));
        Ok(())
    }
}
