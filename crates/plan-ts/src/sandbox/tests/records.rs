//! The records of the prelude.

use expect_test::expect;

use super::{check, check_inside, check_values, recorded, told};

#[test]
fn a_plan_is_recorded_call_by_call() {
    check(
        "import { definePlan as define, CandidateSet } from 'anabranch';
        export default define(__ab_at(0, { name: 'x', build(ctx) {
            const rows = ctx.viewer({ endpoint: __ab_get(3, __ab_get(2, EP, 'redis'), 'users'), trace: undefined });
            ctx.requireCapability('cap', { a: [1, null] });
            return [rows.take(__ab_at(4, { count: 1 })), rows.test.sleep({ durationMs: 2 }).core.concat({ rhs: rows })];
        } }))",
        expect![[r#"
            core::viewer[] {"endpoint":{"$":"endpoint","id":"ep_0001"}}
            core::take[0] {"count":1}
            test::sleep[0] {"durationMs":2}
            core::concat[2] {"rhs":{"$":"node","node":0}}
            {"name":"x"} -> [1, 3]
            requires cap {"a":[1,null]}
        "#]],
    );
}

#[test]
fn operators_make_expressions_of_tokens() {
    check_values(
        &[
            "__ab_op(0, '*', Key.id, 2)",
            "__ab_op(0, '**', P.weight, 2)",
            "__ab_op(0, '-', 1, __ab_get(1, Key, 'id'))",
            "__ab_op(0, '===', Key.country, 'de')",
            "__ab_op(0, '!==', Key.country, null)",
            "__ab_op(0, '==', undefined, Key.country)",
            "__ab_op(0, 'in', Key.id, [1, 2])",
            "['a'].includes(Key.country)",
            "__ab_logic(0, '&&', Key.id, () => __ab_op(1, '>', Key.id, 3))",
            "__ab_logic(0, '??', P.weight, () => 0.5)",
            "__ab_logic(0, '&&', true, () => Key.id)",
            "__ab_if(0, __ab_op(1, '<', Key.id, 3), () => 1, () => Key.score)",
            "__ab_unary(0, '!', Key.id)",
            "__ab_unary(0, '-', Key.id)",
            "__ab_op(0, '+', __ab_op(0, '<', Key.id, 3), 1)",
        ],
        expect![[r#"
            __ab_op(0, '*', Key.id, 2)
                expr {a:{key:id,op:key_ref},at:0,b:{op:const_number,value:2},op:mul}
            __ab_op(0, '**', P.weight, 2)
                expr {a:{op:param_ref,param:weight},at:0,b:{op:const_number,value:2},op:pow}
            __ab_op(0, '-', 1, __ab_get(1, Key, 'id'))
                expr {a:{op:const_number,value:1},at:0,b:{at:1,key:id,op:key_ref},op:sub}
            __ab_op(0, '===', Key.country, 'de')
                pred {a:{key:country,op:key_ref},at:0,b:{op:const_string,value:de},cmp:==,op:cmp}
            __ab_op(0, '!==', Key.country, null)
                pred {at:0,op:not_null,x:{key:country,op:key_ref}}
            __ab_op(0, '==', undefined, Key.country)
                pred {at:0,op:is_null,x:{key:country,op:key_ref}}
            __ab_op(0, 'in', Key.id, [1, 2])
                pred {at:0,lhs:{key:id,op:key_ref},list:[1,2],op:in}
            ['a'].includes(Key.country)
                pred {lhs:{key:country,op:key_ref},list:[a],op:in}
            __ab_logic(0, '&&', Key.id, () => __ab_op(1, '>', Key.id, 3))
                pred {a:{a:{key:id,op:key_ref},at:0,b:{op:const_bool,value:true},cmp:==,implied:true,op:cmp},at:0,b:{a:{key:id,op:key_ref},at:1,b:{op:const_number,value:3},cmp:>,op:cmp},op:and}
            __ab_logic(0, '??', P.weight, () => 0.5)
                expr {a:{op:param_ref,param:weight},at:0,b:{op:const_number,value:0.5},op:coalesce}
            __ab_logic(0, '&&', true, () => Key.id)
                expr {key:id,op:key_ref}
            __ab_if(0, __ab_op(1, '<', Key.id, 3), () => 1, () => Key.score)
                expr {at:0,cond:{a:{key:id,op:key_ref},at:1,b:{op:const_number,value:3},cmp:<,op:cmp},else:{key:score,op:key_ref},op:if,then:{op:const_number,value:1}}
            __ab_unary(0, '!', Key.id)
                pred {at:0,op:not,x:{a:{key:id,op:key_ref},at:0,b:{op:const_bool,value:true},cmp:==,implied:true,op:cmp}}
            __ab_unary(0, '-', Key.id)
                expr {at:0,op:neg,x:{key:id,op:key_ref}}
            __ab_op(0, '+', __ab_op(0, '<', Key.id, 3), 1)
                expr {a:{at:0,cond:{a:{key:id,op:key_ref},at:0,b:{op:const_number,value:3},cmp:<,op:cmp},else:{op:const_bool,value:false},op:if,then:{op:const_bool,value:true}},at:0,b:{op:const_number,value:1},op:add}
        "#]],
    );
}

#[test]
fn functions_make_expressions_of_tokens() {
    check_values(
        &[
            "E.coalesce(P.weight, E.const(1), E.constNull())",
            "E.clamp(E.key(Key.id), 0, E.param(P.weight))",
            "Pred.and(Pred.cmp('>', Key.id, 1), Pred.not(Key.id), Pred.in(Key.id, [3]))",
            "Pred.or(Pred.isNull(Key.id), Pred.notNull(Key.id), Pred.constBool(true))",
            "regex(Key.country, '^d', 'i')",
            "regex(lower(Key.country), P.pattern)",
            "max(Key.id, 1, min(3, 2))",
            "E.if(Key.id, 1, 'x')",
            "coalesce(Key.id, null)",
        ],
        expect![[r#"
            E.coalesce(P.weight, E.const(1), E.constNull())
                expr {a:{a:{op:param_ref,param:weight},b:{op:const_number,value:1},op:coalesce},b:{op:const_null},op:coalesce}
            E.clamp(E.key(Key.id), 0, E.param(P.weight))
                expr {hi:{op:param_ref,param:weight},lo:{op:const_number,value:0},op:clamp,x:{key:id,op:key_ref}}
            Pred.and(Pred.cmp('>', Key.id, 1), Pred.not(Key.id), Pred.in(Key.id, [3]))
                pred {a:{a:{a:{key:id,op:key_ref},b:{op:const_number,value:1},cmp:>,op:cmp},b:{op:not,x:{a:{key:id,op:key_ref},b:{op:const_bool,value:true},cmp:==,implied:true,op:cmp}},op:and},b:{lhs:{key:id,op:key_ref},list:[3],op:in},op:and}
            Pred.or(Pred.isNull(Key.id), Pred.notNull(Key.id), Pred.constBool(true))
                pred {a:{a:{op:is_null,x:{key:id,op:key_ref}},b:{op:not_null,x:{key:id,op:key_ref}},op:or},b:{op:const_bool,value:true},op:or}
            regex(Key.country, '^d', 'i')
                pred {flags:i,key:country,op:regex,pattern:{kind:literal,value:^d}}
            regex(lower(Key.country), P.pattern)
                pred {flags:,op:regex,pattern:{kind:param,param:pattern},x:{op:lower,x:{key:country,op:key_ref}}}
            max(Key.id, 1, min(3, 2))
                expr {a:{a:{key:id,op:key_ref},b:{op:const_number,value:1},op:max},b:{op:const_number,value:2},op:max}
            E.if(Key.id, 1, 'x')
                expr {cond:{a:{key:id,op:key_ref},b:{op:const_bool,value:true},cmp:==,implied:true,op:cmp},else:{op:const_string,value:x},op:if,then:{op:const_number,value:1}}
            coalesce(Key.id, null)
                expr {a:{key:id,op:key_ref},b:{op:const_null},op:coalesce}
        "#]],
    );
}

#[test]
fn plain_values_compute_as_ever() {
    check(
        "let n = 0; for (let i = 0; __ab_test(1, __ab_op(2, '<', i, 10)); i++) n = __ab_op(3, '+', n, i);
        definePlan({ n, m: min(3, 2), u: upper('a'), c: coalesce(null, 4), t: [1].includes(1), build: (ctx) => ctx.viewer() })",
        expect![[r#"
            core::viewer[] {}
            {"c":4,"m":2,"n":45,"t":true,"u":"A"} -> [0]
        "#]],
    );
}

#[test]
fn functions_and_lists_of_requests() {
    check_values(
        &[
            "__ab_op(0, '%', Key.id, 2)",
            "floor(Key.score)",
            "now()",
            "hash(7, Key.country)",
            "hash(0.5, Key.country)",
            "length(Key.country)",
            "__ab_op(0, 'in', Key.id, P.weight)",
            "P.weight.includes(Key.id)",
        ],
        expect![[r#"
            __ab_op(0, '%', Key.id, 2)
                expr {a:{key:id,op:key_ref},at:0,b:{op:const_number,value:2},op:mod}
            floor(Key.score)
                expr {op:floor,x:{key:score,op:key_ref}}
            now()
                expr {op:now}
            hash(7, Key.country)
                expr {op:hash,seed:7,x:{key:country,op:key_ref}}
            hash(0.5, Key.country)
                0:1:27: the seed of a hash is a whole number that is known now, not 0.5 (write `hash(7, Key.id)`)
            length(Key.country)
                expr {op:length,x:{key:country,op:key_ref}}
            __ab_op(0, 'in', Key.id, P.weight)
                pred {at:0,lhs:{key:id,op:key_ref},list:{op:param_ref,param:weight},op:in}
            P.weight.includes(Key.id)
                pred {lhs:{key:id,op:key_ref},list:{op:param_ref,param:weight},op:in}
        "#]],
    );
}

#[test]
fn wrong_parts_of_expressions_are_told_with_their_site() {
    check_values(
        &[
            "__ab_op(7, '+', Key.id, undefined)",
            "__ab_op(7, '+', Key.id, NaN)",
            "__ab_op(7, '+', Key.id, EP.redis.users)",
            "__ab_op(7, 'in', Key.id, [Key.score])",
            "__ab_op(7, 'in', 'x', Key.score)",
            "__ab_logic(7, '||', Key.id, () => 0.5)",
            "__ab_if(7, Key.id, () => ({}), () => 1)",
            "__ab_op(7, '+', Key.id, '\\ud800')",
            "E.pow(__ab_at(7, Key.id))",
            "E.key(__ab_at(7, 'id'))",
            "Pred.cmp('=', Key.id, __ab_at(7, 3))",
            "regex(Key.country, __ab_at(7, /a/))",
            "regex(Key.country, 'a', __ab_at(7, 'g'))",
            "`${Key.id}`",
            "Math.log(Key.id)",
            "Math.sqrt(Key.id)",
            "Key.country.toLowerCase()",
            "Key.country.length",
            "[...Key.id]",
        ],
        expect![[r#"
            __ab_op(7, '+', Key.id, undefined)
                site 7: undefined is no part of an expression (an expression is made of keys, parameters, numbers, strings, true, false and null)
            __ab_op(7, '+', Key.id, NaN)
                site 7: NaN is no part of an expression (an expression is made of keys, parameters, numbers, strings, true, false and null)
            __ab_op(7, '+', Key.id, EP.redis.users)
                site 7: an endpoint is no part of an expression (an expression is made of keys, parameters, numbers, strings, true, false and null)
            __ab_op(7, 'in', Key.id, [Key.score])
                site 7: a list of `in` has numbers or strings, not an expression (write `x in [1, 2, 3]` or `x in ["a", "b"]`)
            __ab_op(7, 'in', 'x', Key.score)
                site 7: `in` takes a list, not an expression (write `x in [1, 2, 3]` or `x in ["a", "b"]`)
            __ab_logic(7, '||', Key.id, () => 0.5)
                site 7: 0.5 is no predicate (compare it; if it is what to take instead of null, write `x ?? value`)
            __ab_if(7, Key.id, () => ({}), () => 1)
                site 7: the condition is known only when a request comes; JavaScript has run by then (to choose between rows write `rows.if({ pred, then, else })`)
            __ab_op(7, '+', Key.id, '\ud800')
                site 7: "\ud800" is no part of an expression (an expression is made of keys, parameters, numbers, strings, true, false and null)
            E.pow(__ab_at(7, Key.id))
                site 7: `pow` takes 2 arguments, not 1
            E.key(__ab_at(7, 'id'))
                site 7: this takes a key, as `Key.id`, not "id"
            Pred.cmp('=', Key.id, __ab_at(7, 3))
                site 7: no comparison: "=" (one of == != < <= > >=)
            regex(Key.country, __ab_at(7, /a/))
                site 7: a pattern is a string or a parameter, not an object (write `regex(x, "pattern", "i")`)
            regex(Key.country, 'a', __ab_at(7, 'g'))
                site 7: the flags of a pattern are "" or "i", not "g"
            `${Key.id}`
                0:1:20: an expression has no value while the plan is built: it stands for one that a request brings (operators (but for `x++` and `a.b += x`) and log, exp, min, max, abs, pow, clamp, lower, upper make expressions; text and property names cannot be made of one)
            Math.log(Key.id)
                0:1:26: Math.log takes numbers, and this is an expression (write `log(x)`)
            Math.sqrt(Key.id)
                0:1:27: an expression has no value while the plan is built: it stands for one that a request brings (operators (but for `x++` and `a.b += x`) and log, exp, min, max, abs, pow, clamp, lower, upper make expressions; text and property names cannot be made of one)
            Key.country.toLowerCase()
                0:1:17: an expression has no `toLowerCase` (write `lower(x)`)
            Key.country.length
                0:1:17: an expression has no `length`
            [...Key.id]
                0:1:21: TypeError: value is not iterable
        "#]],
    );
}

#[test]
fn unknown_names_are_told_all_at_once() {
    check_inside(
        "__ab_get(1, Key, 'scroe'); Key['idd']; const { wieght } = P; __ab_get(3, __ab_get(2, EP, 'rediss'), 'users');
        __ab_get(4, EP.redis, 'user'); rows = rows.tkae({}).take({ count: 1 });
        rows.viewer(); ctx.take(); rows.test.slep({}); ctx.tset;",
        expect![[r#"
            site 1: there is no key `scroe` (did you mean `score`?)
            0:2:28: there is no key `idd` (did you mean `id`?)
            0:2:28: there is no parameter `wieght` (did you mean `weight`?)
            site 2: there is no kind of endpoints `rediss` (did you mean `redis`?)
            site 4: there is no redis endpoint `user` (did you mean `users`?)
            0:3:47: there is no method `tkae` of rows (did you mean `take`?)
            0:4:9: there is no method `viewer` of rows (it is a method of `ctx`)
            0:4:24: there is no method `take` of `ctx` (it is a method of rows)
            0:4:36: there is no method `slep` of `test` of rows (did you mean `sleep`?)
            0:4:56: there is no method `tset` of `ctx` (did you mean `test`?)
            test::fixed_source[] {}
            core::take[0] {"count":1}
            {} -> [1]
        "#]],
    );
    check_inside(
        "if (__ab_test(1, Key.id)) throw 'never'; while (__ab_test(2, __ab_get(3, Key, 'nope'))) { throw 'never' }",
        expect![[r#"
            site 1: this is known only when a request comes; JavaScript has run by then (to choose between rows write `rows.if({ pred, then, else })`; inside an expression `condition ? a : b`)
            site 3: there is no key `nope` (there is `id`, `score`, `country`)
            test::fixed_source[] {}
            {} -> [0]
        "#]],
    );
}

#[test]
fn options_are_data_or_faults() {
    check_inside(
        "rows.take(__ab_at(1, { a: NaN, b: () => 1, c: Symbol('x'), d: 1n, e: new Map(), f: [1, [undefined]], g: { $: 1 } }));
        const self = {}; self.self = self; rows.take(__ab_at(2, { self }));
        let deep = 1; for (let i = 0; i < 70; i++) deep = [deep]; rows.take(__ab_at(3, { deep }));
        rows.take(__ab_at(4, 5)); rows.take(__ab_at(5, rows)); rows.take({}, __ab_at(6, {})); rows.take(__ab_at(7, [1]));
        rows.take({ [Symbol.iterator]: 1 }); rows.take({ text: '\\ud800' }); rows.take({ ctx, space: rows.test });",
        expect![[r#"
            site 1, a: `a` is NaN, which no plan can say
            site 1, b: `b` is a function, which no plan can say
            site 1, c: `c` is a symbol, which no plan can say
            site 1, d: `d` is a bigint, which no plan can say
            site 1, e: `e` is an object of a class; options are plain objects
            site 1, f: `f` is undefined, which no plan can say
            site 1, g: `g` has a field that no plan can say
            site 2, self: `self` contains itself
            site 3, deep: `deep` is nested deeper than 64
            site 4: `take` takes an object of options, not 5 (write `take({ option: value })`)
            site 5: `take` takes an object of options, not rows (write `take({ option: value })`)
            site 6: `take` takes one object of options
            site 7: `take` takes an object of options, not a list (write `take({ option: value })`)
            0:6:22: `take` has no options named by symbols
            0:6:51: `text` has half of a surrogate pair
            0:6:101: `ctx` is no data
            0:6:101: `space` is no data
            test::fixed_source[] {}
            core::take[0] {"a":{"$":"bad"},"b":{"$":"bad"},"c":{"$":"bad"},"d":{"$":"bad"},"e":{"$":"bad"},"f":[1,[{"$":"bad"}]],"g":{"$":"bad"}}
            core::take[0] {"self":{"self":{"$":"bad"}}}
            core::take[0] {"deep":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{"$":"bad"}]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}
            core::take[0] {}
            core::take[0] {}
            core::take[0] {}
            core::take[0] {}
            core::take[0] {}
            core::take[0] {"text":{"$":"bad"}}
            core::take[0] {"ctx":{"$":"bad"},"space":{"$":"bad"}}
            {} -> [0]
        "#]],
    );
    check_inside(
        "rows.take({ ['__proto__']: 1, toJSON: 'x', constructor: { prototype: null }, n: -0, big: 1e21, f: 0.1 });
        rows.take(Object.create(null)); rows.take(Object.freeze({ list: Object.freeze([true]) }));",
        expect![[r#"
            test::fixed_source[] {}
            core::take[0] {"__proto__":1,"big":1e+21,"constructor":{"prototype":null},"f":0.1,"n":0,"toJSON":"x"}
            core::take[0] {}
            core::take[0] {"list":[true]}
            {} -> [0]
        "#]],
    );
}

#[test]
fn what_build_returns_must_be_rows() {
    let bodies = [
        "",
        "return []",
        "return [ctx.viewer(), 1]",
        "return [,]",
        "return ctx",
        "return (async () => ctx.viewer())()",
        "return Object.create(Object.getPrototypeOf(ctx.viewer()))",
        "return new Proxy(ctx.viewer(), {})",
        "throw new Error('no')",
    ];
    let all = bodies.map(|body| told(&recorded(&format!("definePlan({{ build(ctx) {{ {body} }} }})"))));
    expect![[r#"
        0:1:1: `build` returns nothing (return rows, a list of rows, or an object of rows by name)
        {} -> []
        0:1:1: `build` returns an empty list (return rows, a list of rows, or an object of rows by name)
        {} -> []
        0:1:1: `build` returns a list with 1 in it (return rows, a list of rows, or an object of rows by name)
        core::viewer[] {}
        {} -> []
        0:1:1: `build` returns a list with undefined in it (return rows, a list of rows, or an object of rows by name)
        {} -> []
        0:1:1: `build` returns `ctx` or a namespace (return rows, a list of rows, or an object of rows by name)
        {} -> []
        0:1:1: `build` returns a promise (return rows, a list of rows, or an object of rows by name)
        core::viewer[] {}
        {} -> []
        0:1:1: `build` returns an object (return rows, a list of rows, or an object of rows by name)
        core::viewer[] {}
        {} -> []
        0:1:1: `build` returns an object (return rows, a list of rows, or an object of rows by name)
        core::viewer[] {}
        {} -> []
        0:1:37: Error: no
        {} -> []
    "#]]
    .assert_eq(&all.concat());
}

#[test]
fn a_file_defines_one_plan() {
    check(
        "",
        expect![[r#"
        nowhere: the file defines no plan (write `export default definePlan({ name: "..", build: (ctx) => .. })`)
    "#]],
    );
    check(
        "definePlan(__ab_at(1, 5))",
        expect![[r#"
        site 1: `definePlan` takes one object (write `definePlan({ name: "..", build: (ctx) => .. })`)
        {} -> []
    "#]],
    );
    check(
        "definePlan(__ab_at(1, {}))",
        expect![[r#"
        site 1, build: `build` is undefined, not a function (write `build: (ctx) => ctx.viewer({ .. })`)
        {} -> []
    "#]],
    );
    check(
        "let keep; definePlan({ build: (ctx) => keep = ctx.viewer() }); definePlan(__ab_at(2, {})); keep.take(__ab_at(3, {}));",
        expect![[r#"
            site 2: a plan is defined a second time (a file has one `definePlan`; what plans share goes into a fragment)
            site 3: ops can be called inside `build` only
            core::viewer[] {}
            {} -> [0]
        "#]],
    );
}

#[test]
fn an_uncaught_error_is_told_with_its_place() {
    check(
        "const a = 1;\n  a.b.c();",
        expect![[r#"
        0:2:3: TypeError: cannot read property 'c' of undefined
    "#]],
    );
    check(
        "throw 5",
        expect![[r#"
        nowhere: the plan's code threw 5
    "#]],
    );
    check(
        "throw null",
        expect![[r#"
        nowhere: the plan's code threw null, or used more than 16 MiB of memory
    "#]],
    );
    check(
        "function f() { return g(); }\nfunction g() { throw new RangeError('far'); }\nf()",
        expect![[r#"
        0:2:26: RangeError: far
    "#]],
    );
    check(
        "nope()",
        expect![[r#"
        0:1:1: ReferenceError: nope is not defined
    "#]],
    );
    check(
        "let x = ;",
        expect![[r#"
        0:1:9: SyntaxError: unexpected token in expression: ';'
    "#]],
    );
    check(
        "import { nope } from 'anabranch'",
        expect![[r#"
        nowhere: SyntaxError: Could not find export 'nope' in module 'anabranch'
    "#]],
    );
    check(
        "import './other'",
        expect![[r#"
        nowhere: ReferenceError: Error resolving module './other' from 'file:0'
    "#]],
    );
    check(
        "await new Promise(() => {})",
        expect![[r#"
        nowhere: the plan's code waits for something that never comes
    "#]],
    );
    check(
        "await 1; throw new Error('after')",
        expect![[r#"
        0:1:20: Error: after
    "#]],
    );
}

#[test]
fn long_chains_of_operators_fit() {
    let sum = (0..1000).fold("0".to_owned(), |sum, n| format!("__ab_op({n}, '+', {sum}, 1)"));
    check(
        &format!("definePlan({{ sum: {sum}, build: (ctx) => ctx.viewer() }})"),
        expect![[r#"
            core::viewer[] {}
            {"sum":1000} -> [0]
        "#]],
    );
}

#[test]
fn what_comes_of_a_fault_is_not_recorded() {
    check(
        "definePlan({ build(ctx) { return [ctx.veiwer().take({ count: NaN }).concat({ rhs: ctx.viewer() }), ctx.test.fixedSource({ x: ctx.nope() })] } })",
        expect![[r#"
            0:1:35: there is no method `veiwer` of `ctx` (did you mean `viewer`?)
            0:1:62: `count` is NaN, which no plan can say
            0:1:126: there is no method `nope` of `ctx` (there is `requireCapability`, `core`, `test`, `viewer`)
            core::viewer[] {}
            test::fixed_source[] {"x":{"$":"bad"}}
            {} -> [1]
        "#]],
    );
    check(
        "definePlan({ build: (ctx) => Key.nope })",
        expect![[r#"
        0:1:30: there is no key `nope` (there is `id`, `score`, `country`)
        {} -> []
    "#]],
    );
}
