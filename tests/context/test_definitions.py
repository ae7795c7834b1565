"""The definitions that each grammar finds in a small file of its language."""

import subprocess
import sys

import pytest

from cdd_agent.context.definitions import definitions
from tests.support.tables import each_row


@each_row(
    ("path", "text", "expected"),
    [
        (
            "a.sh",
            """\
greet() {
  echo hello
}

function leave {
  exit 0
}
""",
            [
                "1-3 greet",
                "5-7 leave",
            ],
        ),
        (
            "a.c",
            """\
struct point {
  int x;
};

enum colour { RED };

static int *find(int a)
{
  return 0;
}
""",
            [
                "1-3 point",
                "5-5 colour",
                "7-10 find",
            ],
        ),
        (
            "a.cpp",
            """\
namespace shop {

class Cart {
 public:
  int total() const { return 0; }
};

template <typename T>
T largest(T a, T b) { return a; }

}  // namespace shop

int shop::Cart::count() { return 1; }
""",
            [
                "1-11 shop",
                "3-6 shop.Cart",
                "5-5 shop.Cart.total",
                "8-9 shop.largest",
                "13-13 shop::Cart::count",
            ],
        ),
        (
            "a.h",
            """\
struct point;
class Shape {
 public:
  void draw() {}
};
""",
            [
                "1-1 point",
                "2-5 Shape",
                "4-4 Shape.draw",
            ],
        ),
        (
            "a.cs",
            """\
namespace Shop {
  public interface IPriced { }
  public class Cart {
    public Cart() { }
    public int Total() { return 0; }
    public int Count { get; set; }
  }
  public struct Point { }
  public record Order(int Id);
  enum Colour { Red }
}
""",
            [
                "1-11 Shop",
                "2-2 Shop.IPriced",
                "3-7 Shop.Cart",
                "4-4 Shop.Cart.Cart",
                "5-5 Shop.Cart.Total",
                "8-8 Shop.Point",
                "9-9 Shop.Order",
                "10-10 Shop.Colour",
            ],
        ),
        (
            "a.go",
            """\
package p

type Nine struct{}

type Shape interface {
	Area() int
}

func (n *Nine) Ten() {}

func Eleven() {}
""",
            [
                "3-3 Nine",
                "5-7 Shape",
                "9-9 Ten",
                "11-11 Eleven",
            ],
        ),
        (
            "a.groovy",
            """\
class Cart {
  int total(int a) {
    return 0
  }
}

def helper(x) {
  x
}
""",
            [
                "1-5 Cart",
                "2-4 Cart.total",
                "7-9 helper",
            ],
        ),
        (
            "a.hs",
            """\
module Shop where

data Cart = Cart Int

class Priced a where
  price :: a -> Int

total :: Cart -> Int
total (Cart n) = n
""",
            [
                "5-6 Priced",
                "9-9 total",
            ],
        ),
        (
            "a.java",
            """\
package shop;

public class Cart {
  public Cart() { }
  int total() { return 0; }
  interface Priced { int price(); }
  enum Colour { RED }
  record Order(int id) { }
}
""",
            [
                "3-9 Cart",
                "4-4 Cart.Cart",
                "5-5 Cart.total",
                "6-6 Cart.Priced",
                "6-6 Cart.Priced.price",
                "7-7 Cart.Colour",
                "8-8 Cart.Order",
            ],
        ),
        (
            "a.js",
            """\
import x from './x.js'
export const five = (a) => a
export class Six {
  seven() {
  }
}
function eight() {}
function* nine() {}
const ten = { eleven: () => 1 }
module.exports = function () {}
exports.twelve = function () {}
""",
            [
                "2-2 five",
                "3-6 Six",
                "4-5 Six.seven",
                "7-7 eight",
                "8-8 nine",
                "9-9 eleven",
                "10-10 module.exports",
                "11-11 exports.twelve",
            ],
        ),
        (
            "a.jl",
            """\
module Shop

struct Cart
  items
end

function total(cart)
  0
end

half(x) = x / 2

macro twice(e)
  e
end

end
""",
            [
                "1-17 Shop",
            ],
        ),
        (
            "a.kt",
            """\
package shop

class Cart(val items: List<Int>) {
  fun total(): Int = 0

  companion object {
    fun empty() = Cart(listOf())
  }
}

interface Priced

object Till {
}

fun helper(x: Int): Int {
  return x
}
""",
            [
                "3-9 Cart",
                "4-4 Cart.total",
                "7-7 Cart.empty",
                "11-11 Priced",
                "13-14 Till",
                "16-18 helper",
            ],
        ),
        (
            "a.lua",
            """\
local function helper(x)
  return x
end

function Cart.total(self)
  return 0
end

function Cart:count()
  return 1
end

local later = function() end
""",
            [
                "1-3 helper",
                "5-7 Cart.total",
                "9-11 Cart:count",
            ],
        ),
        (
            "a.m",
            """\
@interface Cart : NSObject
- (int)total;
@end

@implementation Cart
- (int)total {
  return 0;
}
+ (Cart *)empty {
  return nil;
}
@end

int helper(int x) {
  return x;
}

@protocol Priced
- (int)price;
@end
""",
            [
                "14-16 helper",
            ],
        ),
        (
            "a.php",
            """\
<?php
namespace Shop;

interface Priced {
  public function price();
}

class Cart {
  public function total() {
    return 0;
  }
}

trait Counts {
}

enum Colour {
}

function helper($x) {
  return $x;
}
""",
            [
                "2-2 Shop",
                "4-6 Priced",
                "5-5 Priced.price",
                "8-12 Cart",
                "9-11 Cart.total",
                "14-15 Counts",
                "17-18 Colour",
                "20-22 helper",
            ],
        ),
        (
            "a.py",
            """\
import os


@cache
def one(x):
    def two():
        pass


class Three:
    async def four(self): ...
""",
            [
                "4-7 one",
                "6-7 one.two",
                "10-11 Three",
                "11-11 Three.four",
            ],
        ),
        (
            "a.rb",
            """\
module Shop
  class Cart
    def total
      0
    end

    def self.empty
      new
    end
  end
end

def helper(x)
  x
end
""",
            [
                "1-11 Shop",
                "2-10 Shop.Cart",
                "3-5 Shop.Cart.total",
                "7-9 Shop.Cart.empty",
                "13-15 helper",
            ],
        ),
        (
            "a.rs",
            """\
mod c;

pub struct D;

impl D {
    pub fn e(&self) {}
}

trait Priced {
    fn price(&self) -> u32;
}

enum Colour { Red }

macro_rules! twice {
    () => {};
}

type Name = String;

mod inner {
    fn deep() {}
}
""",
            [
                "3-3 D",
                "5-7 D",
                "6-6 D.e",
                "9-11 Priced",
                "13-13 Colour",
                "15-17 twice",
                "19-19 Name",
                "22-22 deep",
            ],
        ),
        (
            "a.scala",
            """\
package shop

class Cart(items: List[Int]) {
  def total: Int = 0
}

object Till {
  def open(): Unit = ()
}

trait Priced {
  def price: Int
}

case class Order(id: Int)

enum Colour:
  case Red
""",
            [
                "3-5 Cart",
                "4-4 Cart.total",
                "7-9 Till",
                "8-8 Till.open",
                "11-13 Priced",
                "12-12 Priced.price",
                "15-15 Order",
                "17-18 Colour",
            ],
        ),
        (
            "a.swift",
            """\
import Foundation

protocol Priced {
  func price() -> Int
}

class Cart {
  init() {}
  func total() -> Int { return 0 }
}

struct Point {
  var x: Int
}

extension Cart {
  func count() -> Int { 1 }
}

enum Colour { case red }

func helper(_ x: Int) -> Int { x }
""",
            [
                "3-5 Priced",
                "7-10 Cart",
                "9-9 Cart.total",
                "12-14 Point",
                "16-18 Cart",
                "17-17 Cart.count",
                "20-20 Colour",
                "22-22 helper",
            ],
        ),
        (
            "a.tsx",
            """\
interface Props { a: string }

export const View = (props: Props) => <p>{props.a}</p>

export function Page() {
  return <View a="b" />
}
""",
            [
                "1-1 Props",
                "3-3 View",
                "5-7 Page",
            ],
        ),
        (
            "a.ts",
            """\
export interface Priced { price(): number }

export abstract class Cart implements Priced {
  abstract price(): number
  total(): number { return 0 }
}

export type Name = string

enum Colour { Red }

namespace Inner {
  export function deep() {}
}

export const five = (a: number) => a
""",
            [
                "1-1 Priced",
                "1-1 Priced.price",
                "3-6 Cart",
                "5-5 Cart.total",
                "8-8 Name",
                "10-10 Colour",
                "12-14 Inner",
                "13-13 Inner.deep",
                "16-16 five",
            ],
        ),
        (
            "a.zig",
            """\
const std = @import("std");

const Point = struct {
    x: i32,

    pub fn length(self: Point) i32 {
        return self.x;
    }
};

pub fn helper(x: i32) i32 {
    return x;
}
""",
            [
                "6-8 length",
                "11-13 helper",
            ],
        ),
    ],
)
def test_each_language(path: str, text: str, expected: list[str]) -> None:
    found = definitions(path, text.encode())

    assert [f"{each.first}-{each.last} {each.name}" for each in found] == expected


@each_row(
    ("path", "text"),
    [
        ("a.clj", "(ns shop)\n\n(defn total [cart] 0)\n"),
        ("a.dart", "int helper(int x) => x;\n"),
        ("a.erl", "-module(shop).\n\ntotal(Cart) -> 0.\n"),
        ("a.ex", "defmodule Shop do\n  def total(cart), do: 0\nend\n"),
        ("a.ml", "let helper x = x\n"),
        ("a.pl", "package Shop;\n\nsub total {\n  return 0;\n}\n"),
        ("a.r", "total <- function(cart) {\n  0\n}\n"),
    ],
)
def test_a_language_without_a_grammar_has_no_definitions(path: str, text: str) -> None:
    assert definitions(path, text.encode()) == ()


@pytest.mark.fork
@pytest.mark.parametrize(
    "broken",
    [
        "sys.modules['tree_sitter_go'] = None",
        "import tree_sitter_go as go; del go.language",
    ],
    ids=["missing", "another interface"],
)
def test_a_grammar_that_cannot_be_loaded_is_like_none(broken: str) -> None:
    code = f"""
import sys
{broken}
from cdd_agent.context.definitions import definitions
print(definitions("a.go", b"package shop\\n\\nfunc total() int {{ return 0 }}\\n"))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout == "()\n", done.stderr
