; Read after java.scm.
; A method of Spock, whose name is a string.
(method_declaration name: (identifier) @name body: (block) @body (#match? @name "^_.*_$")) @test
(expression_statement (binary_expression operator: ["==" "!="])) @check
(labeled_statement (identifier) @_label (#eq? @_label "where")) @computed
