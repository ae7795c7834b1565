(comment) @comment

(call
  target: (identifier) @word
  (arguments . [(string) (charlist)] @name)
  (do_block)? @body
  (#any-of? @word "test" "property" "feature")) @test
(call
  target: (identifier) @word
  (arguments . [(string) (charlist)] @name)
  (do_block)
  (#any-of? @word "describe")) @suite
(call target: (identifier) @_word (do_block) (#eq? @_word "defmodule")) @suite
(unary_operator operator: "@") @mark
(unary_operator
  operator: "@"
  operand: (call target: (identifier) @_word (arguments [(atom) @_said (keywords (pair key: (keyword) @_said))]))
  (#any-of? @_word "tag" "moduletag" "describetag") (#match? @_said "^:?skip\\b")) @skip
(call target: (identifier) @_word (do_block) (#any-of? @_word "if" "unless" "case" "cond")) @branch
(call target: (identifier) @_word (#any-of? @_word "for")) @loop

(call target: (identifier) @call (arguments) @args)
(call target: (dot left: (_) @on right: (identifier) @call) (arguments) @args)
[(string) (charlist) (integer) (float) (atom)] @value
