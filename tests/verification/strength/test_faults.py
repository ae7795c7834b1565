"""The small faults that each language's query finds, and the choice among them."""

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.context.grammars import find_grammar
from cdd_agent.verification.strength.fault import Fault, FaultKind
from cdd_agent.verification.strength.faults import choose_faults, faults_in
from tests.support.tables import each_row

SOURCES = {
    "a.py": r'''"""A module about 1 < 2."""
from typing import TYPE_CHECKING, Literal
__all__ = ["price"]
if TYPE_CHECKING:
    from shop import Cart
MODE: Literal["a"] = "fast"

@cache(maxsize=3)
def price(cart: "Cart", rate: float = 0.5) -> "Price | None":
    """Return 1 price."""
    if cart.total <= 10 and not cart.free or cart.kind in KINDS:
        logger.info("%d items", 3)
        cart.seen = True
        cart.add(b"gift")
        await cart.save()
        total = 2
        total += rate
        return None
    if cart is None:
        raise ValueError(f"no cart {cart!r}")
    assert total > 0, "no total"
    return total * 0x1F

if __name__ == "__main__":
    price(1)
''',
    "a.js": r"""import { b } from "b";
"use strict";
const lib = require("lib");
function price(cart, rate = 0.5) {
  if (cart.total <= 10 && !cart.free || cart.kind === 'gift') {
    console.log("items", 3);
    cart.seen = true;
    cart.add(`gift ${rate}`);
    total += rate;
    return [];
  }
  for (let i = 0; i < 3; i++) {
    delete cart.items[i];
  }
  if (!cart) throw new Error("no cart");
  return total > 0x10 ? total : "none";
}
export const double = (n) => n * 2;
""",
    "a.ts": r"""import type { B } from "b";
export * from "c";
type Kind = "gift" | 1;
interface Shape { kind: "gift" }
enum Colour { Red = 1 }
class Cart {
  private count: number = 1;
  is(kind: string): boolean {
    return kind! === ("gift" as string) && <any>true;
  }
}
""",
    "a.tsx": r"""type Props = { kind: "gift" };
export function Row(props: Props) {
  return <td className="row" colSpan={2}>{props.a && <b>1 &lt; 2</b>}</td>;
}
""",
    "a.go": r"""package shop

import "fmt"

type Kind struct { Name string `json:"name"` }

func (c *Cart) Price(rate float64) (int, error) {
	if c.Total <= 10 && !c.Free || c.Kind == "gift" {
		log.Printf("%d items", 3)
		c.Seen = true
		c.Add(`gift`)
		total += 2
		return total, nil
	}
	for i := 0; i < 3; i++ {
		count++
	}
	defer c.Close()
	if c == nil {
		return 0, fmt.Errorf("no cart %d", 1)
	}
	return 1, nil
}

func free(c *Cart) bool {
	return c.Total == 0
}

func first(c *Cart) *Kind {
	return c.kinds[0]
}

func kind(c Cart) Kind {
	return c.kind
}
""",
    "a.rs": r"""use shop::Cart;
#[derive(Debug)]
struct Kind { codes: [u8; 4] }
const NAME: &str = "gift";
fn price(cart: &mut Cart, rate: f64) -> Option<u32> {
    if cart.total <= 10 && !cart.free || cart.kind == "gift" {
        log::info!("{} items", 3);
        cart.seen = true;
        cart.add(r#"gift"#);
        cart.count += 2u32;
        return Some(total);
    }
    let kinds: Vec<u8> = vec![1, 2];
    let first = cart.first().expect("no cart");
    Some(total)
}
fn is_free(cart: &Cart) -> bool {
    cart.total == 0
}
#[test]
fn doubles() {
    check(1 < 2);
}
#[cfg(test)]
mod tests {
    fn helper() -> bool { true }
}
""",
    "A.java": r"""package shop;
import shop.Cart;
class Shop {
  private String name = "gift";
  @Size(3)
  int price(Cart cart, List<String> kinds) {
    if (cart.total <= 10 && !cart.free || cart.kind == 1L) {
      log.info("{} items", 3);
      this.seen = true;
      cart.add("gift");
      total += 2;
      return total;
    }
    for (int i = 0; i < 3; i++) {
      count++;
    }
    if (cart == null) throw new Error("no cart");
    return 1;
  }
  Cart first() {
    return carts.get(0);
  }
  char code() { return letter; }
}
""",
    "a.c": r"""#include "shop.h"
#define MOST 3
static const char *name = "gift";
int codes[4];
int price(struct cart *cart) {
  if (cart->total <= 10 && !cart->free) {
    log_info("%d items", 3);
    cart->seen = 1;
    cart_add(cart, "gift");
    total += 2;
    return total;
  }
  for (int i = 0; i < 3; i++) {
    count++;
  }
  return 'a' == cart->code;
}
struct cart make(void) { return cart; }
""",
    "a.cpp": r"""#include "shop.h"
static_assert(sizeof(int) == 4, "int");
std::array<int, 3> codes;
std::vector<int> Shop::price(const Cart& cart) {
  if (cart.total <= 10 && not cart.free) {
    std::cerr << "items" << 3;
    this->seen = true;
    cart.add("gift");
    total += 2;
    throw Error("no cart");
  }
  auto is_more = [](int a) { return a > 1; };
  return total;
}
""",
    "a.cs": r"""using Shop;
class Shop {
  [Size(3)]
  int Price(List<string> kinds) {
    if (cart.Total <= 10 && !cart.Free || cart.Kind == "gift") {
      _logger.LogInformation("{} items", 3);
      this.seen = true;
      cart.Add($"gift {rate}");
      total += 2;
      return total;
    }
    for (int i = 0; i < 3; i++) {
      count++;
    }
    if (cart == null) throw new Error("no cart");
    return 1;
  }
  bool IsFree => total == 0;
}
""",
    "a.rb": r"""require "shop"
class Shop
  include Kinds
  attr_reader :cart
  def price(rate = 0.5)
    if @cart.total <= 10 && !@cart.free
      logger.info("3 items")
      @seen = true
      @cart.add("gift")
      total += 2
      return total
    end
    raise ArgumentError, "no cart"
    total > 1
  end
end
""",
    "a.php": r"""<?php
use Shop\Cart;
require 'shop.php';
function price(Cart $cart, int $most = 3): int {
    if ($cart->total <= 10 && !$cart->free || $cart->kind === 'gift') {
        error_log("3 items");
        $this->seen = true;
        $cart->add("gift $most");
        $total += 2;
        return $total;
    }
    for ($i = 0; $i < 3; $i++) {
        $count++;
    }
    throw new Exception("no cart");
}
$double = fn($n) => $n * 2;
function make(): Cart { return $cart; }
""",
    "a.kt": r"""import shop.Cart
class Shop {
    fun price(cart: Cart): String? {
        if (cart.total <= 10 && !cart.free) {
            log.info("3 items")
            this.seen = true
            cart.add("gift")
            total += 2
            return total
        }
        require(total > 0)
        error("no total")
    }
    fun isFree(cart: Cart): Boolean = cart.total == 0
}
""",
}

FAULTS = {
    "a.py": r"""6 constant: `"fast"` became `""`
9 constant: `0.5` became `1.5`
11 boundary: `<=` became `<`
11 comparison: `<=` became `>`
11 constant: `10` became `11`
11 boolean: `and` became `or`
11 boolean: `not cart.free` became `cart.free`
11 boolean: `or` became `and`
11 comparison: `in` became `not in`
13 deleted statement: `cart.seen = True` was deleted
13 boolean: `True` became `False`
14 deleted statement: `cart.add(b"gift")` was deleted
14 constant: `b"gift"` became `b""`
15 deleted statement: `await cart.save()` was deleted
16 constant: `2` became `3`
17 deleted statement: `total += rate` was deleted
19 comparison: `is` became `is not`
20 deleted statement: `raise ValueError(f"no cart {cart!r}")` was deleted
21 comparison: `>` became `<=`
21 boundary: `>` became `>=`
21 constant: `0` became `1`
22 returned value: `None` was returned instead of `total * 0x1F`
""",
    "a.js": r"""4 constant: `0.5` became `1.5`
5 boundary: `<=` became `<`
5 comparison: `<=` became `>`
5 constant: `10` became `11`
5 boolean: `&&` became `||`
5 boolean: `!cart.free` became `cart.free`
5 boolean: `||` became `&&`
5 comparison: `===` became `!==`
5 constant: `'gift'` became `""`
7 deleted statement: `cart.seen = true` was deleted
7 boolean: `true` became `false`
8 deleted statement: `cart.add(`gift ${rate}`)` was deleted
8 constant: ``gift ${rate}`` became `""`
9 deleted statement: `total += rate` was deleted
12 constant: `0` became `1`
12 boundary: `<` became `<=`
12 comparison: `<` became `>=`
12 constant: `3` became `4`
13 deleted statement: `delete cart.items[i]` was deleted
15 boolean: `!cart` became `cart`
15 deleted statement: `throw new Error("no cart")` was deleted
16 returned value: `null` was returned instead of `total > 0x10 ? total : "none"`
16 comparison: `>` became `<=`
16 boundary: `>` became `>=`
16 constant: `"none"` became `""`
18 returned value: `null` was returned instead of `n * 2`
18 constant: `2` became `3`
""",
    "a.ts": r"""5 constant: `1` became `2`
7 constant: `1` became `2`
9 returned value: `null` was returned instead of `kind! === ("gift" as string) && <any>true`
9 comparison: `===` became `!==`
9 constant: `"gift"` became `""`
9 boolean: `&&` became `||`
9 boolean: `true` became `false`
""",
    "a.tsx": r"""3 returned value: `null` was returned instead of `<td className="row" colSpan={2}>{props.a && <b>1 &lt; 2</b>…`
3 constant: `2` became `3`
3 boolean: `&&` became `||`
""",
    "a.go": r"""8 boundary: `<=` became `<`
8 comparison: `<=` became `>`
8 constant: `10` became `11`
8 boolean: `&&` became `||`
8 boolean: `!c.Free` became `c.Free`
8 boolean: `||` became `&&`
8 comparison: `==` became `!=`
8 constant: `"gift"` became `""`
10 deleted statement: `c.Seen = true` was deleted
10 boolean: `true` became `false`
11 deleted statement: `c.Add(`gift`)` was deleted
11 constant: ``gift`` became `""`
12 deleted statement: `total += 2` was deleted
12 constant: `2` became `3`
13 returned value: `0, nil` was returned instead of `total, nil`
15 constant: `0` became `1`
15 boundary: `<` became `<=`
15 comparison: `<` became `>=`
15 constant: `3` became `4`
16 deleted statement: `count++` was deleted
19 comparison: `==` became `!=`
20 returned value: `0, nil` was returned instead of `0, fmt.Errorf("no cart %d", 1)`
20 constant: `1` became `2`
22 constant: `1` became `2`
22 returned value: `0, nil` was returned instead of `1, nil`
26 returned value: `false` was returned instead of `c.Total == 0`
26 comparison: `==` became `!=`
26 constant: `0` became `1`
30 returned value: `nil` was returned instead of `c.kinds[0]`
30 constant: `0` became `1`
""",
    "a.rs": r"""4 constant: `"gift"` became `""`
6 boundary: `<=` became `<`
6 comparison: `<=` became `>`
6 constant: `10` became `11`
6 boolean: `&&` became `||`
6 boolean: `!cart.free` became `cart.free`
6 boolean: `||` became `&&`
6 comparison: `==` became `!=`
6 constant: `"gift"` became `""`
8 deleted statement: `cart.seen = true` was deleted
8 boolean: `true` became `false`
9 deleted statement: `cart.add(r#"gift"#)` was deleted
9 constant: `r#"gift"#` became `""`
10 deleted statement: `cart.count += 2u32` was deleted
10 constant: `2u32` became `3u32`
11 returned value: `None` was returned instead of `Some(total)`
15 returned value: `None` was returned instead of `Some(total)`
18 returned value: `false` was returned instead of `cart.total == 0`
18 comparison: `==` became `!=`
18 constant: `0` became `1`
""",
    "A.java": r"""4 constant: `"gift"` became `""`
7 boundary: `<=` became `<`
7 comparison: `<=` became `>`
7 constant: `10` became `11`
7 boolean: `&&` became `||`
7 boolean: `!cart.free` became `cart.free`
7 boolean: `||` became `&&`
7 comparison: `==` became `!=`
7 constant: `1L` became `2L`
9 deleted statement: `this.seen = true` was deleted
9 boolean: `true` became `false`
10 deleted statement: `cart.add("gift")` was deleted
10 constant: `"gift"` became `""`
11 deleted statement: `total += 2` was deleted
11 constant: `2` became `3`
12 returned value: `0` was returned instead of `total`
14 constant: `0` became `1`
14 boundary: `<` became `<=`
14 comparison: `<` became `>=`
14 constant: `3` became `4`
15 deleted statement: `count++` was deleted
17 comparison: `==` became `!=`
18 constant: `1` became `2`
21 returned value: `null` was returned instead of `carts.get(0)`
21 constant: `0` became `1`
""",
    "a.c": r"""3 constant: `"gift"` became `""`
6 boundary: `<=` became `<`
6 comparison: `<=` became `>`
6 constant: `10` became `11`
6 boolean: `&&` became `||`
6 boolean: `!cart->free` became `cart->free`
8 deleted statement: `cart->seen = 1` was deleted
8 constant: `1` became `2`
9 deleted statement: `cart_add(cart, "gift")` was deleted
9 constant: `"gift"` became `""`
10 deleted statement: `total += 2` was deleted
10 constant: `2` became `3`
11 returned value: `0` was returned instead of `total`
13 constant: `0` became `1`
13 boundary: `<` became `<=`
13 comparison: `<` became `>=`
13 constant: `3` became `4`
14 deleted statement: `count++` was deleted
16 returned value: `0` was returned instead of `'a' == cart->code`
16 comparison: `==` became `!=`
""",
    "a.cpp": r"""5 boundary: `<=` became `<`
5 comparison: `<=` became `>`
5 constant: `10` became `11`
5 boolean: `&&` became `||`
5 boolean: `not cart.free` became `cart.free`
7 deleted statement: `this->seen = true` was deleted
7 boolean: `true` became `false`
8 deleted statement: `cart.add("gift")` was deleted
8 constant: `"gift"` became `""`
9 deleted statement: `total += 2` was deleted
9 constant: `2` became `3`
12 comparison: `>` became `<=`
12 boundary: `>` became `>=`
12 constant: `1` became `2`
13 returned value: `{}` was returned instead of `total`
""",
    "a.cs": r"""5 boundary: `<=` became `<`
5 comparison: `<=` became `>`
5 constant: `10` became `11`
5 boolean: `&&` became `||`
5 boolean: `!cart.Free` became `cart.Free`
5 boolean: `||` became `&&`
5 comparison: `==` became `!=`
5 constant: `"gift"` became `""`
7 deleted statement: `this.seen = true` was deleted
7 boolean: `true` became `false`
8 deleted statement: `cart.Add($"gift {rate}")` was deleted
8 constant: `$"gift {rate}"` became `""`
9 deleted statement: `total += 2` was deleted
9 constant: `2` became `3`
10 returned value: `default` was returned instead of `total`
12 constant: `0` became `1`
12 boundary: `<` became `<=`
12 comparison: `<` became `>=`
12 constant: `3` became `4`
13 deleted statement: `count++` was deleted
15 comparison: `==` became `!=`
16 constant: `1` became `2`
18 returned value: `default` was returned instead of `total == 0`
18 comparison: `==` became `!=`
18 constant: `0` became `1`
""",
    "a.rb": r"""5 constant: `0.5` became `1.5`
6 boundary: `<=` became `<`
6 comparison: `<=` became `>`
6 constant: `10` became `11`
6 boolean: `&&` became `||`
6 boolean: `!@cart.free` became `@cart.free`
8 deleted statement: `@seen = true` was deleted
8 boolean: `true` became `false`
9 deleted statement: `@cart.add("gift")` was deleted
9 constant: `"gift"` became `""`
10 deleted statement: `total += 2` was deleted
10 constant: `2` became `3`
11 returned value: `nil` was returned instead of `total`
13 deleted statement: `raise ArgumentError, "no cart"` was deleted
14 returned value: `nil` was returned instead of `total > 1`
14 comparison: `>` became `<=`
14 boundary: `>` became `>=`
14 constant: `1` became `2`
""",
    "a.php": r"""4 constant: `3` became `4`
5 boundary: `<=` became `<`
5 comparison: `<=` became `>`
5 constant: `10` became `11`
5 boolean: `&&` became `||`
5 boolean: `!$cart->free` became `$cart->free`
5 boolean: `||` became `&&`
5 comparison: `===` became `!==`
5 constant: `'gift'` became `""`
7 deleted statement: `$this->seen = true` was deleted
7 boolean: `true` became `false`
8 deleted statement: `$cart->add("gift $most")` was deleted
8 constant: `"gift $most"` became `""`
9 deleted statement: `$total += 2` was deleted
9 constant: `2` became `3`
10 returned value: `0` was returned instead of `$total`
12 constant: `0` became `1`
12 boundary: `<` became `<=`
12 comparison: `<` became `>=`
12 constant: `3` became `4`
13 deleted statement: `$count++` was deleted
15 deleted statement: `throw new Exception("no cart")` was deleted
17 returned value: `null` was returned instead of `$n * 2`
17 constant: `2` became `3`
""",
    "a.kt": r"""4 boundary: `<=` became `<`
4 comparison: `<=` became `>`
4 constant: `10` became `11`
4 boolean: `&&` became `||`
4 boolean: `!cart` became `cart`
6 deleted statement: `this.seen = true` was deleted
6 boolean: `true` became `false`
7 deleted statement: `cart.add("gift")` was deleted
7 constant: `"gift"` became `""`
8 deleted statement: `total += 2` was deleted
8 constant: `2` became `3`
9 returned value: `null` was returned instead of `total`
11 deleted statement: `require(total > 0)` was deleted
11 comparison: `>` became `<=`
11 boundary: `>` became `>=`
11 constant: `0` became `1`
12 deleted statement: `error("no total")` was deleted
14 returned value: `false` was returned instead of `cart.total == 0`
14 comparison: `==` became `!=`
14 constant: `0` became `1`
""",
}


def all_lines(text: str) -> range:
    return range(1, text.count("\n") + 2)


@each_row("path", SOURCES)
def test_each_fault_of_a_small_file(path: str) -> None:
    text = SOURCES[path]
    found = faults_in(path, text, all_lines(text))
    shown = [f"{fault.line} {fault.kind}: {fault.words}" for fault in found]
    assert shown == FAULTS[path].splitlines()


@each_row("path", SOURCES)
def test_every_kind_occurs_in_every_language_that_can_have_it(path: str) -> None:
    if path in ("a.ts", "a.tsx"):
        return  # JavaScript's query has the rest
    text = SOURCES[path]
    found = faults_in(path, text, all_lines(text))
    assert {fault.kind for fault in found} == set(FaultKind)


@given(
    path=st.sampled_from(sorted(SOURCES)),
    lines=st.sets(st.integers(min_value=0, max_value=60)),
)
def test_faults_are_in_the_given_lines_and_keep_the_file_readable(
    path: str, lines: set[int]
) -> None:
    text = SOURCES[path]
    grammar = find_grammar(path)
    assert grammar is not None
    tree = grammar.parse(text.encode())
    assert tree is not None
    has_error = tree.root_node.has_error
    every = faults_in(path, text, all_lines(text))
    found = faults_in(path, text, lines)
    assert set(choose_faults(found, {path: text}, len(found))) == set(found)
    assert len(set(found)) == len(found)
    assert set(found) <= set(every)
    texts = set()
    for fault in found:
        changed = fault.apply(text)
        texts.add(changed)
        assert changed != text
        data, edited = text.encode(), changed.encode()
        tail = len(data) - fault.end
        assert edited[: fault.start] == data[: fault.start]
        assert tail == 0 or edited[-tail:] == data[-tail:]
        first = data[: fault.start].count(b"\n") + 1
        last = data[: fault.end].count(b"\n") + 1
        assert fault.line == first
        assert lines.issuperset(range(first, last + 1))
        tree = grammar.parse(edited)
        assert tree is not None
        assert tree.root_node.has_error <= has_error
    assert len(texts) == len(found), "two faults make the same text"
    for fault in every:
        last = text.encode()[: fault.end].count(b"\n") + 1
        if lines.issuperset(range(fault.line, last + 1)):
            assert fault in found


@each_row(
    ("path", "text"),
    [
        ("a.unknown", "a < 1"),
        ("a.md", "a < 1"),
        ("a.py", ""),
        ("a.py", "# a < 1\n"),
        ("a.py", '"""\na < 1\n"""\n'),
        ("a.py", "x: Literal[1]\n"),
        ("a.py", "T = TypeVar('T')\n"),
        ("a.py", "class A:\n    __slots__ = ('a', 'b')\n"),
        ("a.go", "package a\n// a < 1\n"),
        ("a.py", "a < 1\n" * 200_000),  # too large
        ("a.py", "x = " + "(" * 20_000 + "a < 1" + ")" * 20_000),  # too deep
    ],
)
def test_nothing_to_change(path: str, text: str) -> None:
    assert faults_in(path, text, all_lines(text)) == []


def test_a_fault_is_in_the_lines_as_a_whole() -> None:
    text = "save(\n    a,\n    b,\n)\n"
    assert faults_in("a.py", text, [1, 2, 4]) == []
    (fault,) = faults_in("a.py", text, [1, 2, 3, 4])
    assert fault.words == "`save( a, b, )` was deleted"


def test_two_faults_with_the_same_text_are_one() -> None:
    text = "class Cart\n  def close\n    save(1)\n  end\nend\n"
    words = [fault.words for fault in faults_in("a.rb", text, [3])]
    assert words == ["`nil` was returned instead of `save(1)`", "`1` became `2`"]


def test_a_file_with_errors_of_syntax_gets_no_more_of_them() -> None:
    text = "def f(:\n    return a < 1\n\ndef g():\n    return b > 2\n"
    found = faults_in("a.py", text, all_lines(text))
    words = [fault.words for fault in choose_faults(found, {"a.py": text}, 9)]
    assert "`>` became `<=`" in words


def test_a_fault_that_would_not_parse_is_not_chosen() -> None:
    text = "a = b < 2\n"
    broken = Fault("a.py", 1, 6, 7, "((", FaultKind.BOUNDARY, "w", "s")
    fine = Fault("a.py", 1, 6, 7, ">", FaultKind.BOUNDARY, "w", "s")
    assert choose_faults([broken, fine], {"a.py": text}, 2) == [fine]


def test_the_choice_stays_when_other_lines_are_edited() -> None:
    text = "".join(f"x{n} = a[{n}] < {n}\n" for n in range(20))
    edited = "\n\n" + text
    before, after = (
        choose_faults(faults_in("a.py", one, all_lines(one)), {"a.py": one}, 10)
        for one in (text, edited)
    )
    assert [one.words for one in after] == [one.words for one in before]
    assert [one.line for one in after] == [one.line + 2 for one in before]


def test_positions_are_bytes_of_utf_8() -> None:
    text = 'name = "Müller €"; big = size > 1\n'
    fault = next(
        one for one in faults_in("a.py", text, [1]) if one.kind is FaultKind.BOUNDARY
    )
    assert fault.apply(text) == 'name = "Müller €"; big = size >= 1\n'
    assert fault.source == text.strip()


def test_lines_with_carriage_returns_stay() -> None:
    text = "a = 1\r\nb = a < 2\r\n"
    (fault, *_) = faults_in("a.py", text, [2])
    assert fault.apply(text).count("\r\n") == 2
    assert fault.source == "b = a < 2"


# Choosing


@st.composite
def some_faults(draw: st.DrawFn) -> list[Fault]:
    made = []
    for number in range(draw(st.integers(0, 40))):
        line = draw(st.integers(1, 8))
        kind = draw(st.sampled_from(FaultKind))
        made.append(Fault("a.py", line, number, number + 1, "x", kind, "w", "s"))
    return made


TEXTS = {"a.py": "x" * 41}


@given(faults=some_faults(), most=st.integers(0, 45), data=st.data())
def test_the_choice_does_not_depend_on_the_order(
    faults: list[Fault], most: int, data: st.DataObject
) -> None:
    chosen = choose_faults(faults, TEXTS, most)
    assert len(chosen) == min(most, len(faults))
    assert set(chosen) <= set(faults)
    assert chosen == choose_faults(data.draw(st.permutations(faults)), TEXTS, most)


@given(faults=some_faults(), most=st.integers(1, 45))
def test_the_choice_is_spread_over_kinds(faults: list[Fault], most: int) -> None:
    chosen = choose_faults(faults, TEXTS, most)
    for kind in FaultKind:
        have = sum(fault.kind is kind for fault in faults)
        got = sum(fault.kind is kind for fault in chosen)
        most_of_a_kind = max(
            sum(fault.kind is other for fault in chosen) for other in FaultKind
        )
        assert got >= min(have, most_of_a_kind - 1)


def test_the_choice_is_spread_over_lines() -> None:
    text = "".join(f"x{n} = a[{n}] < {n}\n" for n in range(20))
    found = faults_in("a.py", text, all_lines(text))
    chosen = choose_faults(found, {"a.py": text}, 20)
    assert len({fault.line for fault in chosen}) == 20
