//! Statements as steps.

use minijinja::machinery::ast::{CallArg, Expr, ForLoop, IfCond, Set, SetBlock, Stmt, WithBlock};

use crate::code::{Kind, Loop, Place, Slot, Step, Target, Term};
use crate::error::Halt;
use crate::names::Names;
use crate::syntax::{place, refused, with_tree};
use crate::template::Dialect;

/// The steps of a template and its names.
pub(crate) struct Code {
    pub(crate) steps: Vec<Step>,
    pub(crate) inputs: Vec<String>,
    pub(crate) slots: usize,
}

/// Compiles a template.
pub(crate) fn compile(source: &str, dialect: Dialect) -> Result<Code, Halt> {
    with_tree(source, dialect, |tree| {
        let mut compiler = Compiler {
            dialect,
            names: Names::default(),
            steps: Vec::new(),
            loops: Vec::new(),
            filtered: None,
        };
        compiler.names.open();
        compiler.statement(tree)?;
        let Compiler { steps, names, .. } = compiler;
        Ok(Code { steps, slots: names.slots, inputs: names.inputs })
    })
}

pub(crate) struct Compiler {
    pub(crate) dialect: Dialect,
    pub(crate) names: Names,
    steps: Vec<Step>,
    /// Of each loop around: the step of its next round, and the steps that leave it.
    pub(crate) loops: Vec<(usize, Vec<usize>)>,
    /// The slot of the text that a filter block changes.
    pub(crate) filtered: Option<Slot>,
}

impl Compiler {
    pub(crate) fn is_plain(&self) -> bool {
        self.dialect == Dialect::Plain
    }

    fn add(&mut self, step: Step) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// Lets a step jump to the next one.
    fn land(&mut self, step: usize) {
        let next = self.steps.len();
        match &mut self.steps[step] {
            Step::Unless(_, to) | Step::Jump(to) | Step::Begin(_, to) | Step::Next(to) | Step::Break(to) => {
                *to = next;
            }
            _ => unreachable!("only jumps are landed"),
        }
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) -> Result<(), Halt> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt<'_>) -> Result<(), Halt> {
        match statement {
            Stmt::Template(template) => self.statements(&template.children)?,
            Stmt::EmitRaw(text) => {
                self.add(Step::Text(text.raw.into(), place(text.span())));
            }
            Stmt::EmitExpr(shown) => {
                let term = self.term(&shown.expr)?;
                self.add(Step::Show(term));
            }
            Stmt::IfCond(branch) => self.branch(branch)?,
            Stmt::ForLoop(rounds) => self.rounds(rounds, place(rounds.span()))?,
            Stmt::Set(set) => self.set(set)?,
            Stmt::SetBlock(set) => self.set_block(set, place(set.span()))?,
            Stmt::WithBlock(with) => self.with(with)?,
            Stmt::FilterBlock(block) => {
                let slot = self.capture(&block.body)?;
                let term = self.filter_chain(&block.filter, slot)?;
                self.add(Step::Show(term));
            }
            Stmt::Break(leave) => {
                let step = self.steps.len();
                let Some((_, leaving)) = self.loops.last_mut() else { return outside(place(leave.span())) };
                leaving.push(step);
                self.add(Step::Break(0));
            }
            Stmt::Continue(skip) => {
                let Some((next, _)) = self.loops.last() else { return outside(place(skip.span())) };
                self.add(Step::Jump(*next));
            }
            _ => return refused(0..0, "has a statement that is refused"),
        }
        Ok(())
    }

    fn branch(&mut self, branch: &IfCond<'_>) -> Result<(), Halt> {
        let term = self.term(&branch.expr)?;
        let test = self.add(Step::Unless(term, 0));
        let before = self.names.flow();
        self.statements(&branch.true_body)?;
        let behind = (!branch.false_body.is_empty()).then(|| self.add(Step::Jump(0)));
        self.land(test);
        let after_true = self.names.go_from(before);
        self.statements(&branch.false_body)?;
        self.names.join(&after_true);
        behind.into_iter().for_each(|jump| self.land(jump));
        Ok(())
    }

    fn rounds(&mut self, rounds: &ForLoop<'_>, place: Place) -> Result<(), Halt> {
        if rounds.recursive {
            return refused(place, "`recursive` is refused: write a loop for each level");
        }
        let over = self.term(&rounds.iter)?;
        if self.is_plain() {
            check_plain_loop(&over)?;
        }
        self.names.open_loop();
        let target = self.target(&rounds.target)?;
        // Its jump target is known, its loop is not: the slots of the body are found on the way.
        let begin = self.add(Step::Jump(0));
        let next = self.add(Step::Next(0));
        self.loops.push((next, Vec::new()));
        let only = rounds.filter_expr.as_ref().map(|only| self.term(only)).transpose()?;
        self.statements(&rounds.body)?;
        let leaving = self.loops.pop().map(|(_, leaving)| leaving).unwrap_or_default();
        self.add(Step::Jump(next));
        let own = self.names.close().into();
        self.steps[begin] = Step::Begin(Box::new(Loop { target, over, only, own }), 0);
        self.land(begin);
        let before = self.names.flow();
        self.names.open();
        self.statements(&rounds.else_body)?;
        self.names.close();
        self.names.go_from(before);
        self.land(next);
        leaving.into_iter().for_each(|step| self.land(step));
        Ok(())
    }

    fn set(&mut self, set: &Set<'_>) -> Result<(), Halt> {
        if let (Expr::Var(name), Expr::Call(call)) = (&set.target, &set.expr)
            && matches!(&call.expr, Expr::Var(function) if function.id == "namespace")
        {
            return self.namespace(name.id, &call.args, place(set.target.span()));
        }
        let term = self.term(&set.expr)?;
        if let Expr::GetAttr(field) = &set.target {
            let slot = self.field(field.name, &field.expr, place(field.span()))?;
            self.add(Step::Keep(slot, term));
            return Ok(());
        }
        let target = self.target(&set.target)?;
        self.add(Step::Set(target, term));
        Ok(())
    }

    /// The slot of a field that is set.
    fn field(&mut self, name: &str, of: &Expr<'_>, place: Place) -> Result<Slot, Halt> {
        let slot = match of {
            Expr::Var(of) => self.names.field(of.id, name, place.clone())?,
            _ => None,
        };
        match slot {
            Some(slot) => Ok(slot),
            None => refused(
                place,
                "only fields of a namespace can be set, as in `{% set ns = namespace(n=0) %}{% set ns.n = 1 %}`",
            ),
        }
    }

    fn namespace(&mut self, name: &str, fields: &[CallArg<'_>], place: Place) -> Result<(), Halt> {
        let mut values = Vec::new();
        for field in fields {
            match field {
                CallArg::Kwarg(field, value) => values.push((*field, self.term(value)?)),
                _ => {
                    return refused(
                        place,
                        "`namespace` takes fields by name, as in `namespace(found=false)`",
                    );
                }
            }
        }
        self.names.set_namespace(name, place.clone())?;
        for (field, term) in values {
            if let Some(slot) = self.names.field(name, field, place.clone())? {
                self.add(Step::Keep(slot, term));
            }
        }
        Ok(())
    }

    /// Names the output of statements; returns the slot.
    fn capture(&mut self, body: &[Stmt<'_>]) -> Result<Slot, Halt> {
        self.add(Step::Capture);
        // A jump out of the capture would leave it open.
        let loops = std::mem::take(&mut self.loops);
        self.names.open();
        let compiled = self.statements(body);
        self.names.close();
        self.loops = loops;
        compiled?;
        let slot = self.names.hidden();
        self.add(Step::EndCapture(slot));
        Ok(slot)
    }

    fn set_block(&mut self, set: &SetBlock<'_>, whole: Place) -> Result<(), Halt> {
        let slot = self.capture(&set.body)?;
        let term = match &set.filter {
            Some(filter) => self.filter_chain(filter, slot)?,
            None => Term { place: whole, kind: Kind::Local(slot) },
        };
        match &set.target {
            Expr::GetAttr(field) => {
                let slot = self.field(field.name, &field.expr, place(field.span()))?;
                self.add(Step::Keep(slot, term));
            }
            target => {
                let target = self.target(target)?;
                self.add(Step::Set(target, term));
            }
        }
        Ok(())
    }

    fn filter_chain(&mut self, filter: &Expr<'_>, slot: Slot) -> Result<Term, Halt> {
        let outer = self.filtered.replace(slot);
        let term = self.term(filter);
        self.filtered = outer;
        term
    }

    fn with(&mut self, with: &WithBlock<'_>) -> Result<(), Halt> {
        let mut values = Vec::new();
        for (_, value) in &with.assignments {
            values.push(self.term(value)?);
        }
        self.names.open();
        for ((target, _), term) in with.assignments.iter().zip(values) {
            let target = self.target(target)?;
            self.add(Step::Set(target, term));
        }
        self.statements(&with.body)?;
        self.names.close();
        Ok(())
    }

    fn target(&mut self, target: &Expr<'_>) -> Result<Target, Halt> {
        match target {
            Expr::Var(name) => self.names.set(name.id, place(name.span())).map(Target::One),
            Expr::List(list) if self.is_plain() => {
                let name = |target: &Expr<'_>| match target {
                    Expr::Var(_) => self.target(target),
                    other => refused(place(other.span()), NAMES),
                };
                Ok(Target::Each(list.items.iter().map(name).collect::<Result<_, Halt>>()?))
            }
            Expr::List(list) => Ok(Target::Each(
                list.items.iter().map(|item| self.target(item)).collect::<Result<_, Halt>>()?,
            )),
            other => refused(place(other.span()), NAMES),
        }
    }
}

const NAMES: &str = "a loop names its elements, or each part of them";

fn outside(place: Place) -> Result<(), Halt> {
    refused(place, "there is no loop around it")
}

fn check_plain_loop(over: &Term) -> Result<(), Halt> {
    let parts = match &over.kind {
        Kind::List(terms) => terms.iter().all(Term::is_part),
        _ => over.is_part(),
    };
    match parts {
        true => Ok(()),
        false => refused(
            over.place.clone(),
            "a loop goes over what is there: a variable, a part of one, what `split`, `sort` and the like make of it, \
             `range`, or a list of such; not over what an expression makes",
        ),
    }
}
