"""The mutations: for each rule of the core that people rely on, a small fault that
breaks it.
"""

from tests.mutations.running import Mutation

_MATCHING = (
    "edits/search.py",
    "tests/edits/test_search.py tests/edits/test_replies_edits.py",
)
_GUARDS = (
    "edits/validators.py",
    "tests/edits/test_changes.py tests/edits/test_replies_whole_files.py tests/edits/test_replies_of_models.py",
)
_VALUES = "tests/actions/test_values.py"
_ENGINE = "tests/engine/test_engine.py"

MUTATIONS = [
    # --- actions: values that check themselves, and the folders of commands -----------
    *[
        Mutation(rule, file, old, new, tests)
        for rule, file, old, new, tests in [
            (
                "a value in code is not converted to its type",
                "forms.py",
                "if self.is_decoded or value is None:",
                "if True:",
                _VALUES,
            ),
            (
                "an enum of numbers is no whole number",
                "forms.py",
                "return type(value) in _EXACT[form]",
                "return isinstance(value, _EXACT[form])",
                _VALUES,
            ),
            (
                "a mapping in code is no value",
                "forms.py",
                "if is_struct and self.is_decoded and isinstance(value, dict):",
                "if is_struct and isinstance(value, dict):",
                _VALUES,
            ),
            (
                "the items of a list are checked",
                "forms.py",
                "            items.append(self.value(item_kind, item, (*place, index)))",
                "            items.append(item)",
                _VALUES,
            ),
            (
                "a list must not be empty where it needs items",
                "forms.py",
                "is_short = len(value) < (meta.min_length or 0)",
                "is_short = False",
                _VALUES,
            ),
            (
                "a result keeps a copy of its action",
                "actions/model.py",
                "deepcopy(self.action)",
                "self.action",
                _VALUES,
            ),
            (
                "a bad folder does not reach the port",
                "process/policy.py",
                '        confine_folder(root, cwd or "")\n    except',
                "        pass\n    except",
                "tests/tools/test_command_folder.py",
            ),
            (
                "an action plan continues after a failed action",
                "engine/action_plan.py",
                "            if choice is Choice.QUIT:",
                "            if choice is Choice.QUIT or self._failed:",
                "tests/tools/test_command_folder.py",
            ),
            (
                "an argument is not given twice",
                "tools/base.py",
                "for name in given.keys() & kwargs.keys():",
                "for name in ():",
                "tests/tools/test_tools.py",
            ),
        ]
    ],
    # --- actions: where an edit belongs -----------------------------------------------
    *[
        Mutation(rule, _MATCHING[0], old, new, _MATCHING[1])
        for rule, old, new in [
            (
                "two places are never decided between",
                "if len(matches) > 1:\n                places",
                "if len(matches) > 2:\n                places",
            ),
            (
                "a rival stops a close match",
                "elif _overall(bare, there) >= _RIVAL:",
                "elif _overall(bare, there) >= 2:",
            ),
            (
                "a rival found later stops it, too",
                "if len(good) > 1 or not rivals:",
                "if good or not rivals:",
            ),
            ("what is not nearly as close is no rival", "_RIVAL = 0.8", "_RIVAL = 0.3"),
            (
                "two close matches are two",
                "if rivals or len(good) > 1:",
                "if rivals or good:",
            ),
            (
                "a close match needs three lines",
                "if len(told) < 3:",
                "if len(told) < 2:",
            ),
            (
                "numbers and operators must not differ",
                "elif _skeleton(line) != _skeleton(other) or",
                "elif",
            ),
            (
                "a line that is quoted has to be like it",
                "_QUOTED = 0.75",
                "_QUOTED = 0.0",
            ),
            (
                "a shift is one and the same for all lines",
                "shift if shift.applied([a for a, _ in pairs]) == [b for _, b in pairs] else None",
                "shift",
            ),
            (
                "quoted lines stay as the file has them",
                'if tag == "equal":  # only quoted',
                'if tag == "never":  # only quoted',
            ),
            (
                "new lines get the file's line ends",
                '("\\r" if self._is_crlf else "")',
                '""',
            ),
            (
                "the byte order mark stays",
                "return (self._mark + text).encode",
                "return text.encode",
            ),
            (
                "a file without a last line end stays so",
                "if self._raw and self.final_newline:",
                "if self._raw:",
            ),
            (
                "what is done already is not done again",
                "if self._is_done(match, find, new):",
                "if False:",
            ),
            (
                "a hint decides between places",
                "if len(at_line) == 1:",
                "if len(at_line) == 0:",
            ),
            (
                "a hint names lines that are there once",
                "if len(places) != 1:\n                return matches",
                "if not places:\n                return matches",
            ),
            (
                "line numbers move with earlier edits",
                "self._moves.append((match.start, len(lines) - count))",
                "pass",
            ),
            (
                "part of a line is replaced only once",
                "if content.find(old, first + 1) >= 0:",
                "if False:",
            ),
        ]
    ],
    # --- actions: what is refused -----------------------------------------------------
    *[
        Mutation(rule, _GUARDS[0], old, new, _GUARDS[1])
        for rule, old, new in [
            (
                "a file of ten lines may be shortened",
                "if old > _SHORT and",
                "if old >= _SHORT - 1 and",
            ),
            ("a longer one may not", "_SHORT = 10", "_SHORT = 11"),
            ("half of a file may stay", "new * 2 < old:", "new * 2 <= old:"),
            ("less than half may not", "new * 2 < old:", "new * 2 + 1 < old:"),
            (
                "blank lines do not fill up a file",
                "new = sum(bool(line.strip()) for line in content.splitlines())",
                "new = len(content.splitlines())",
            ),
            (
                "a file is not emptied",
                "if before.strip() and not content.strip():",
                "if False:",
            ),
            (
                "a remark does not stand for lines",
                "if line not in there and (",
                "if False and (",
            ),
            (
                "marks of a merge do not get in",
                'if kinds != "<=>" or',
                'if kinds == "<=>" or',
            ),
            (
                "numbers of lines do not get in",
                "if _is_listing(content) and not _is_listing(old):",
                "if False:",
            ),
            (
                "broken code is refused",
                "if found.wrong and (before is None or",
                "if not found.wrong and (before is None or",
            ),
            (
                "what was broken before may stay so",
                "(before is None or not _read(root, path, before).wrong)",
                "True",
            ),
        ]
    ],
    *[
        Mutation(
            rule,
            "edits/targets.py",
            old,
            new,
            "tests/tools/test_action_runner.py tests/edits/test_changes.py",
        )
        for rule, old, new in [
            (".cdd is protected", 'or names[0] == ".cdd"', ""),
            (
                ".cdd is protected in every spelling",
                "        _as_any_disk_reads(part) for part in place",
                '        part if part.casefold().startswith(".cdd") else _as_any_disk_reads(part) for part in place',
            ),
            (
                ".cdd is protected behind links",
                "place = (root / path).resolve()\n",
                "place = root.resolve() / path\n",
            ),
            (
                ".git is protected in any folder",
                '{".git", "git~1"} & set(names)',
                '{".git", "git~1"} & set(names[:1])',
            ),
            ("case is not looked at", '.rstrip(". ").casefold()', '.rstrip(". ")'),
            (
                "dots and spaces at the end are not looked at",
                '.rstrip(". ").casefold()',
                ".casefold()",
            ),
            (
                "streams are not looked at",
                'return seen.partition(":")[0]',
                "return seen",
            ),
            (
                "characters without width are not looked at",
                'if unicodedata.category(char) != "Cf"',
                "if char",
            ),
            ("a link is not written through", "if stat.S_ISLNK(mode):", "if False:"),
        ]
    ],
    Mutation(
        "one file is not written under two spellings",
        "edits/targets.py",
        "if twin is not path:",
        "if False:",
        "tests/edits/test_replies_names.py tests/edits/test_changes.py tests/edits/test_replies_whole_files.py tests/edits/test_replies_edits.py",
    ),
    Mutation(
        "one reply, all or nothing: a problem refuses it",
        "edits/build.py",
        "        if self._problems:\n",
        "        if not self._files:\n",
        "tests/edits/test_changes.py",
    ),
    Mutation(
        "a file changed since it was judged is not written",
        "edits/changes.py",
        "self.check_still_valid(root)\n        begun",
        "begun",
        "tests/edits/test_changes.py",
    ),
    Mutation(
        "each is looked at once more as it is written",
        "edits/changes.py",
        "                if read_bytes(root / change.path) != change.before:\n                    raise changed_meanwhile(change.path)\n                by_id",
        "                by_id",
        "tests/edits/test_changes.py",
    ),
    Mutation(
        "what was written before a failure is restored",
        "edits/changes.py",
        "            for by_id in reversed(begun):",
        "            for by_id in begun[:0]:",
        "tests/edits/test_changes.py tests/engine/test_engine.py",
    ),
    Mutation(
        "a new file gives no other one away",
        "edits/build.py",
        "if look_at(root, path) and place.is_file() and not place.is_symlink():",
        "if False:",
        "tests/tools/test_action_runner.py",
    ),
    *[
        Mutation(rule, file, old, new, tests)
        for rule, file, old, new, tests in [
            (
                "what was not shown of a file is not changed",
                "edits/build.py",
                "if known_after(before, after, shown) is None:",
                "if False:",
                "tests/edits/test_excerpts.py",
            ),
            (
                "a file that was shown in part is not replaced whole",
                "edits/build.py",
                "if shown := self._terms.in_part.get(str(file.path)):",
                "if shown := ():",
                "tests/edits/test_excerpts.py",
            ),
            (
                "nor deleted",
                "edits/policy.py",
                "str(path) not in self.in_part\n            and str(path) in self.seen",
                "str(path) in self.seen",
                "tests/edits/test_excerpts.py",
            ),
            (
                "what was not shown stays whole lines",
                "edits/excerpts.py",
                "while (found := text.find(lines, at)) >= 0 and not _begins_a_line(text, found):",
                "while (found := text.find(lines, at)) >= 0 and False:",
                "tests/edits/test_excerpts.py",
            ),
            (
                "numbers before lines count only where the file has these lines",
                "edits/search.py",
                "if match.start + 1 == self._now(numbers[0])",
                "if True",
                "tests/edits/test_excerpts.py",
            ),
            (
                "parts of a prompt are kept with what it shows",
                "engine/transaction.py",
                "self.in_part |= shown.in_part",
                "pass",
                "tests/engine/test_related_code.py",
            ),
            (
                "what was found for the first attempt is shown again as it was",
                "engine/related_code.py",
                "if is_there and room.takes(estimated_tokens(kept.text)):",
                "if False:",
                "tests/engine/test_related_code.py",
            ),
        ]
    ],
    # --- execution: a step is a transaction -------------------------------------------
    Mutation(
        "a baseline that was broken off is of no use",
        "verification/baseline.py",
        "not ran.tests.is_finished or ",
        "",
        "tests/engine/test_baseline.py",
    ),
    Mutation(
        "nor is one with another exit code than that of tests",
        "verification/baseline.py",
        " or not check.came_to_its_end(result)",
        "",
        "tests/engine/test_baseline.py",
    ),
    Mutation(
        "nor is one that took too long",
        "verification/baseline.py",
        '    if result.timed_out:\n        return f"it was still',
        '    if False:\n        return f"it was still',
        "tests/engine/test_baseline.py",
    ),
    Mutation(
        "what was of no use is not used",
        "verification/baseline.py",
        'force_setattr(self, "tests", None)',
        "pass",
        "tests/engine/test_baseline.py",
    ),
    Mutation(
        "what was said by an older one is not believed",
        "engine/engine.py",
        "if run.state.started_at is None:",
        "if False:",
        "tests/engine/test_baseline.py",
    ),
    Mutation(
        "a saved reply is not used when a shown file is another",
        "engine/run.py",
        " and not self._changed_since_shown(attempt, root)",
        "",
        _ENGINE,
    ),
    Mutation(
        "a saved reply is not used for another step",
        "engine/run.py",
        "and shown.step == step_digest(step, attempt.guidance)",
        "",
        _ENGINE,
    ),
    Mutation(
        "memory is never ahead of the disk",
        "engine/run.py",
        "        self.state = save(\n            self.ticket, self.plan, self.record, state.with_costs(self._unsaved)\n        )",
        "        self.state = state\n        self.state = save(self.ticket, self.plan, self.record, state)",
        _ENGINE,
    ),
    Mutation(
        "the copy is never ahead of the ticket's state",
        "engine/load_state.py",
        "    save_state(state, ticket.state_path, record.state)\n",
        "    save_state(state, record.state, ticket.state_path)\n",
        _ENGINE,
    ),
    Mutation(
        "guidance begins a new attempt",
        "engine/run.py",
        "if not guidance and self._goes_on",
        "if self._goes_on",
        _ENGINE,
    ),
    Mutation(
        "the journal is saved before the write",
        "engine/journal.py",
        "        self._save(entries)\n        try:\n            yield\n",
        "        try:\n            yield\n            self._save(entries)\n",
        "tests/engine/test_journal.py",
    ),
    Mutation(
        "no call changes anything before the baseline is over",
        "engine/transaction.py",
        "        await self._wait_until_known()\n        changes = await",
        "        changes = await",
        "tests/engine/test_beside_the_baseline.py",
    ),
    Mutation(
        "no command runs before the baseline is over",
        "engine/transaction.py",
        "            await self._wait_until_known()\n            self.emit(CheckpointStarted",
        "            self.emit(CheckpointStarted",
        "tests/engine/test_beside_the_baseline.py",
    ),
    Mutation(
        "waiting for the baseline takes nothing of a turn's time",
        "engine/transaction.py",
        "        with self.clock.standing_still():\n            await self.known()",
        "        await self.known()",
        "tests/engine/test_beside_the_baseline.py",
    ),
    Mutation(
        "a file that the baseline changes costs no attempt",
        "engine/engine.py",
        "left -= not (outcome.is_by_person or is_outdated)",
        "left -= not outcome.is_by_person",
        "tests/engine/test_beside_the_baseline.py",
    ),
    Mutation(
        "so it is in the engine",
        "engine/transaction.py",
        "        with self.attempt.journal.writing(changes):\n            # the answer may have taken hours: each file is looked at once more\n            changes.apply(self.root)",
        "        changes.apply(self.root)\n        with self.attempt.journal.writing(changes):\n            pass",
        _ENGINE,
    ),
    Mutation(
        "what a file was first is what comes back",
        "engine/journal.py",
        "if entry.path in first:",
        "if entry.path in first and entry.before is None:",
        "tests/engine/test_journal.py",
    ),
    Mutation(
        "a refusal is forgotten",
        "engine/journal.py",
        "            self._save(known)\n            raise",
        "            raise",
        "tests/engine/test_journal.py",
    ),
    Mutation(
        "a copy that was tampered with is not restored",
        "engine/journal.py",
        "if content is None or held(content, 0).content != before.content:",
        "if content is None:",
        "tests/engine/test_journal.py",
    ),
    Mutation(
        "a journal stays in the project",
        "engine/journal.py",
        'if path.is_absolute() or ".." in path.parts:',
        "if path.is_absolute():",
        "tests/engine/test_journal.py",
    ),
    Mutation(
        "a failed attempt is restored before the next",
        "engine/engine.py",
        "                also_show |= frozenset(self.run.restore(step.number))\n",
        "",
        _ENGINE,
    ),
    Mutation(
        "a stopped step is pending",
        "engine/engine.py",
        "                self.run.recorder.forget()\n                self.run.interrupt(step.number)",
        "                self.run.recorder.forget()\n                self.run.restore(step.number)",
        _ENGINE,
    ),
    Mutation(
        "what no person approved is pending",
        "engine/engine.py",
        "            self.run.interrupt(step.number)\n            settled, self.stopped_by = True, error",
        "            settled, self.stopped_by = True, error",
        _ENGINE,
    ),
    Mutation(
        "a step that was skipped leaves nothing",
        "engine/engine.py",
        "            self.run.restore(step.number)\n            await self._undoing.close_step(before)",
        "            await self._undoing.close_step(before)",
        _ENGINE,
    ),
    Mutation(
        "the number of attempts is kept to",
        "engine/engine.py",
        "will_retry = left > 0 and",
        "will_retry = left > 1 and",
        _ENGINE,
    ),
    Mutation(
        "a step is not done where a commit would have others' edits",
        "engine/engine.py",
        "if others := sorted(changed.intersection(outcome.changes.touched)):",
        "if others := sorted(set[str]()):",
        "tests/engine/test_committing.py",
    ),
    Mutation(
        "what is not approved is not written",
        "engine/approval.py",
        "review=review.leave_all(answer.reason)), ChangeSet(\n                ()\n            )",
        "review=review.leave_all(answer.reason)), changes",
        "tests/engine/test_reviewing.py",
    ),
    Mutation(
        "what is left out stays as it was",
        "edits/review.py",
        "old[slice(*hunk.old)]\n                if place in self.left_out\n",
        "old[slice(*hunk.old)]\n                if place not in self.left_out\n",
        "tests/edits/test_review.py",
    ),
    Mutation(
        "what was answered holds after an interruption",
        "engine/transaction.py",
        "answer = answers.find(call, proposed, changes, number)",
        "answer = None",
        "tests/engine/test_reviewing.py",
    ),
    Mutation(
        "a file that nobody could bring back is not changed",
        "engine/transaction.py",
        "if missed := await self.history.also(self.attempt, touched):",
        "if missed := (await self.history.also(self.attempt, touched) and ()):",
        "tests/engine/test_tools_in_step.py",
    ),
    Mutation(
        "what a command made is the step's",
        "engine/step_tools.py",
        "            await (\n                history.saw(attempt)\n                if attempt.side is None\n                else history.saw_beside(attempt)\n            )\n",
        "",
        "tests/engine/test_undo_after_interruption.py",
    ),
    Mutation(
        "what commands made in a tree of its own comes along",
        "engine/step_tools.py",
        "        await self.transaction.redo_beside()\n",
        "",
        "tests/engine/test_side_by_side.py",
    ),
    Mutation(
        "steps whose files are apart begin together, and no others",
        "engine/side_by_side.py",
        "if is_free and not any(map(files.overlaps, claimed)):",
        "if is_free:",
        "tests/engine/test_side_by_side.py",
    ),
    Mutation(
        "a dependency on a removed step is not one on the step with its number",
        "tickets/plan_changes.py",
        "needed = [labels.get(number, str(number)) for number in step.dependencies]",
        "needed = [str(number) for number in step.dependencies]",
        "tests/tickets/test_plan_changes.py",
    ),
    Mutation(
        "a new plan keeps the user's notes",
        "tickets/plan_changes.py",
        "new = replace(new, notes=notes)\n",
        "new = replace(new)\n",
        "tests/tickets/test_plan_changes.py",
    ),
    Mutation(
        "a step that moved is no conflict",
        "tickets/plan_changes.py",
        "replace(_refer_by_labels(step, labels), number=0)",
        "_refer_by_labels(step, labels)",
        "tests/tickets/test_plan_changes.py",
    ),
    Mutation(
        "the model knows completed steps by number",
        "tickets/plan_changes.py",
        "return replace(self, completed=frozenset(numbers))",
        "return replace(self)",
        "tests/agents/test_planner.py",
    ),
    Mutation(
        "a step that is changed keeps its id",
        "tickets/plan_draft.py",
        'id=previous.id if previous else ""',
        'id=""',
        "tests/tickets/test_plan_changes.py",
    ),
    Mutation(
        "an id is given once",
        "tickets/plan_draft.py",
        "taken.add(step_id)",
        "pass",
        "tests/tickets/test_plan_changes.py",
    ),
    Mutation(
        "the id of a former step is not used again",
        "agents/plan_desk.py",
        "fixed.used_ids.union(filter(None, former_ids))",
        "fixed.used_ids",
        "tests/agents/test_planner.py",
    ),
    Mutation(
        "a draft that removes no tests does not lift a `none` of the user",
        "tickets/plan_draft.py",
        "not removes_tests and not (previous and previous.removes_tests == ())",
        "not removes_tests",
        "tests/tickets/test_plan_changes.py",
    ),
    Mutation(
        "the model gets the findings of plan.md",
        "agents/planning.py",
        "_findings(self.desk.ticket.parse_plan(self.text())),",
        '"",',
        "tests/agents/test_planner.py",
    ),
    Mutation(
        "the model must mend the findings of its own text",
        "agents/planning_replies.py",
        "read = self._desk.ticket.parse_plan(text)",
        "read = plan",
        "tests/agents/test_planner.py",
    ),
    Mutation(
        "a folder does not show a file that may hold secrets",
        "tickets/declared_files.py",
        "not is_ours and self.glob.matches(path) and not _is_secret(path)",
        "not is_ours and self.glob.matches(path)",
        "tests/tickets/test_declared_files.py",
    ),
    Mutation(
        "nor a link to one, or out of the project",
        "tickets/declared_files.py",
        "if entry.kind is Kind.FILE:\n            return True",
        "return True",
        "tests/tickets/test_declared_files.py",
    ),
    Mutation(
        "a new file in a declared folder is declared",
        "engine/step.py",
        "if declared and not declared.covers(path)",
        "if declared and path not in declared.paths",
        "tests/engine/test_declared_files.py",
    ),
    Mutation(
        "patterns that may mean the same file overlap",
        "tickets/declared_files.py",
        "return _is_inside(self._folder, other._folder)",
        "return False",
        "tests/tickets/test_declared_files.py",
    ),
    Mutation(
        "the lines to look at are shown of a file that does not fit",
        "engine/shown_files.py",
        "also=_in_pieces(lines),",
        "also=(),",
        "tests/engine/test_declared_files.py",
    ),
    Mutation(
        "a folder does not let its files be deleted unseen",
        "tickets/declared_files.py",
        "file.file.is_deleted and file.covers(path)",
        "file.covers(path)",
        "tests/tickets/test_declared_files.py",
    ),
    Mutation(
        "undo knows what tools' commands made",
        "engine/history.py",
        "(segment, await checkpoints.changes(segment.before, segment.after))\n                for segment in row",
        "(segment, [c for c in await checkpoints.changes(segment.before, segment.after) if any(c.path in s.paths for s in spans)])\n                for segment in row",
        "tests/engine/test_tools_in_step.py::test_undo_and_diff_know_what_tools_did",
    ),
    Mutation(
        "what came between attempts is not theirs",
        "engine/net_changes.py",
        "if segment.is_ours and change.path not in segment.own:",
        "if change.path not in segment.own:",
        "tests/engine/test_net_changes.py tests/engine/test_undo.py",
    ),
    Mutation(
        "files that were kept are not restored",
        "engine/net_changes.py",
        "if segment.is_ours and change.path not in segment.own:",
        "if segment.is_ours:",
        "tests/engine/test_net_changes.py tests/engine/test_undo_after_interruption.py",
    ),
    Mutation(
        "a failed check is no pass",
        "verification/verdict.py",
        "    elif result.return_code:\n        failed_before",
        "    elif result.return_code and baseline:\n        failed_before",
        "tests/verification/test_verdict.py tests/engine/test_engine.py",
    ),
    Mutation(
        "a check that took too long is no pass",
        "verification/verdict.py",
        "    if result.timed_out:\n        yield _Objection(_too_slow(check, result))\n    elif result.return_code:",
        "    if result.timed_out:\n        pass\n    elif result.return_code:",
        "tests/verification/test_verdict.py tests/engine/test_engine.py",
    ),
    Mutation(
        "a run that left no report is no pass",
        "verification/verdict.py",
        "    elif check.always_reports or",
        "    elif",
        "tests/verification/test_verdict.py tests/engine/test_false_claims.py",
    ),
    Mutation(
        "nor where the check reported tests before",
        "verification/verdict.py",
        "(check.asks_for_report and has_reported)",
        "False",
        "tests/verification/test_verdict.py",
    ),
    Mutation(
        "a report of jest's holds as many tests as it says",
        "verification/runners/jest.py",
        "if told != sum(",
        "if told < sum(",
        "tests/verification/runners/test_jest.py",
    ),
    Mutation(
        "a package of Go's without an end was cut short",
        "verification/runners/go.py",
        "            and package.result is not None\n",
        "",
        "tests/verification/runners/test_go.py",
    ),
    Mutation(
        "each program of cargo's has its own tests",
        "verification/runners/cargo.py",
        "if len({*files}) < len(files):",
        "if False:",
        "tests/verification/runners/test_cargo.py",
    ),
    Mutation(
        "a report without its last line was cut short",
        "verification/runners/lines.py",
        "return found.run(selection, is_finished=is_finished)",
        "return found.run(selection)",
        "tests/verification/runners/test_lines.py",
    ),
    Mutation(
        "tests that went are missed",
        "verification/verdict.py",
        "        *_about_missing(results, seen, work),\n",
        "",
        "tests/verification/test_verdict.py tests/engine/test_baseline.py",
    ),
    Mutation(
        "settings of tests are looked at",
        "verification/verdict.py",
        "is_named = work.permissions.names_file(path)",
        "is_named = True",
        "tests/verification/test_harness.py tests/engine/test_false_claims.py tests/verification/test_verdict.py",
    ),
    Mutation(
        "what was old is told as such",
        "verification/verdict.py",
        "    elif old_failures or targets.excused:\n",
        "    elif targets.excused:\n",
        "tests/engine/test_baseline.py tests/verification/test_verdict.py",
    ),
    Mutation(
        "a step removes only tests that its plan names",
        "verification/permissions.py",
        "        return any(covers(entry, test) for entry in entries)",
        "        return bool(entries)",
        "tests/verification/test_permissions.py tests/verification/test_lost_tests.py",
    ),
    Mutation(
        "a leave to fail ends with the step that it names",
        "verification/permissions.py",
        "                if until in waiting or (giver is step and not until):",
        "                if giver is step or until in waiting:",
        "tests/verification/test_permissions.py tests/verification/test_targets.py",
    ),
    Mutation(
        "fewer assertions weaken a test",
        "verification/lost_tests.py",
        "    if _has_fewer_checks(old, new, len(helpers)):",
        "    if False:",
        "tests/verification/test_lost_tests.py",
    ),
    Mutation(
        "a test that became a part of another is not removed",
        "verification/lost_tests.py",
        "        elif not absorber.is_split(old):",
        "        else:",
        "tests/verification/test_lost_tests.py",
    ),
    Mutation(
        "a plan that says which tests a step may remove leaves no question",
        "verification/verdict.py",
        "    if permissions.removes is not None:\n        return ()",
        "",
        "tests/verification/test_lost_tests.py",
    ),
    Mutation(
        "no question about work that fails anyway",
        "verification/verdict.py",
        "        if not objection.lost:\n            return ()",
        "",
        "tests/engine/test_test_leave.py",
    ),
    Mutation(
        "a no about tests is a no",
        "engine/test_leave.py",
        "            return await self.user.approve(proposal) is Choice.YES",
        "            return bool(await self.user.approve(proposal))",
        "tests/engine/test_test_leave.py",
    ),
    Mutation(
        "a question about tests is asked once",
        "engine/test_leave.py",
        "        if answer is None or tests != frozenset(answer.tests):",
        "        if True:",
        "tests/engine/test_test_leave.py",
    ),
    Mutation(
        "records hold no secrets",
        "engine/attempt.py",
        "self._write(_output_name(place), self.redactor.redact(text))",
        "self._write(_output_name(place), text)",
        "tests/engine/test_attempt.py",
    ),
    # --- several checks of a step -----------------------------------------------------
    *[
        Mutation(rule, module, old, new, tests)
        for rule, module, old, new, tests in [
            (
                "the checks after the first run too",
                "engine/step_check.py",
                "            if result.objections:\n                break",
                "            break",
                "tests/engine/test_several_checks.py",
            ),
            (
                "a failed check ends the checks of its step",
                "engine/step_check.py",
                "            if result.objections:\n                break\n",
                "",
                "tests/engine/test_several_checks.py",
            ),
            (
                "each check needs its approval",
                "engine/step.py",
                "        for check in checks:\n            if not self.commands.must_ask",
                "        for check in checks[:1]:\n            if not self.commands.must_ask",
                "tests/engine/test_several_checks.py",
            ),
            (
                "the output of an interrupted check is removed",
                "engine/attempt.py",
                "            remove(self.folder / _output_name(place))\n",
                "",
                "tests/engine/test_several_checks.py",
            ),
            (
                "the tests of all checks are saved",
                "engine/attempt.py",
                "_Tests(tests=first, more=tuple(more))",
                "_Tests(tests=first)",
                "tests/engine/test_several_checks.py",
            ),
            (
                "a check without tests makes a step unverified",
                "verification/verdict.py",
                "    if Verification.NONE in proofs and not any_passed:",
                "    if proofs == {Verification.NONE}:",
                "tests/verification/test_several_checks.py",
            ),
            (
                "old failures of one check remain those of the step",
                "verification/verdict.py",
                "    if Verification.BASELINE in proofs:",
                "    if proofs == {Verification.BASELINE}:",
                "tests/verification/test_several_checks.py",
            ),
            (
                "a test that another check runs is not gone",
                "verification/outcomes.py",
                "                test not in merged.results\n",
                "                any(test not in run.results for run in runs)\n",
                "tests/verification/test_several_checks.py",
            ),
            (
                "a test that another check runs is not skipped",
                "verification/outcomes.py",
                "_OF_SEVERAL_RUNS = (Result.FAILED, Result.PASSED, Result.SKIPPED)",
                "_OF_SEVERAL_RUNS = (Result.FAILED, Result.SKIPPED, Result.PASSED)",
                "tests/verification/test_several_checks.py",
            ),
        ]
    ],
    # --- tickets ----------------------------------------------------------------------
    *[
        Mutation(rule, f"tickets/{module}.py", old, new, f"tests/tickets/{tests}.py")
        for module, rule, old, new, tests in [
            (
                "plan_reader",
                "a field of the plan that is written twice is text",
                "            elif label.plan_field in plan.fields:\n                text.append(line)",
                "            elif label.plan_field in plan.fields:\n                pass",
                "test_plan",
            ),
            (
                "step_reader",
                "a field that is written twice is text",
                "            self.description.append(prose([self.document.lines[block.line]]))\n",
                "",
                "test_plan",
            ),
            (
                "step_reader",
                "plain labels count only where none is bold",
                "    if any(label.is_bold for label in line_labels.values()):",
                "    if False:",
                "test_plan",
            ),
            (
                "step_reader",
                "code has no labels",
                "        line = document.lines[number]\n        if line.is_code:\n            continue\n        if _is_heading",
                "        line = document.lines[number]\n        if _is_heading",
                "test_plan",
            ),
            (
                "plan_reader",
                "a part of a section stays in it",
                "        if is_deeper:\n            return None\n",
                "",
                "test_plan",
            ),
            (
                "plan_reader",
                "text above the first heading is not the plan's",
                "        if section.heading:\n            plan.introduction",
                "        if True:\n            plan.introduction",
                "test_plan",
            ),
            (
                "plan_reader",
                "only the first heading is the title",
                "        if len(sections) == 1 and self._is_plan_title(headings):",
                "        if self._is_plan_title(headings):",
                "test_plan",
            ),
            (
                "plan_headings",
                "a line above a rule is not a heading",
                "return length > 2 or",
                "return",
                "test_plan",
            ),
            (
                "plan_headings",
                "a label above a rule is not a heading",
                "or (length == 2 and has_label(document.lines[number].text))",
                "",
                "test_plan",
            ),
            (
                "step_reader",
                "a paragraph after a blank line is not a value",
                "        return not (is_in_item or piece.text.startswith",
                "        return False and not (is_in_item or piece.text.startswith",
                "test_plan",
            ),
            (
                "check_reader",
                "each line of a fence is a check",
                "    return _to_checks(commands)\n\n\ndef is_check_command",
                "    return _to_checks(commands[-1:])\n\n\ndef is_check_command",
                "test_plan",
            ),
            (
                "check_reader",
                "a comment is not a command",
                'if line and not line.startswith("#")]',
                "if line]",
                "test_plan",
            ),
            (
                "step_reader",
                "a list below a value in words is not of it",
                "            if is_below_value and not is_numbers(piece.text):",
                "            if False:",
                "test_plan",
            ),
            (
                "step_reader",
                "a sentence behind a label without marks is text",
                "    return is_serves and not is_numbers(label.value)",
                "    return False",
                "test_plan",
            ),
            (
                "file_reader",
                "a comma in a code span is part of a path",
                "{'x' * length}",
                "{text[name.start + 1 : name.end]}",
                "test_plan",
            ),
            (
                "step_reader",
                "a deeper item is a note of its file",
                "            if files.add_note(piece):",
                "            if False:",
                "test_plan",
            ),
            (
                "plan_reader",
                "each paragraph of risks is one",
                "elif _starts_paragraph(line, is_after_blank=is_after_blank):",
                "elif False:",
                "test_plan",
            ),
            (
                "file_reader",
                "words for no files are not a file",
                "    if _NO_FILES.fullmatch(text):\n        return FileText(is_none=True)\n",
                "",
                "test_plan",
            ),
            (
                "step_reader",
                "checks behind several labels add up",
                "            self.checks += check.commands\n",
                "            self.checks = list(check.commands)\n",
                "test_plan_families",
            ),
            (
                "check_reader",
                "a sentence that begins with a program is not run",
                "    if not _is_program(first_word):",
                "    if True:",
                "test_plan_families",
            ),
            (
                "step_reader",
                "a check behind a paragraph is an error",
                "        self._report_checks_below(block, taken)\n",
                "",
                "test_plan_families",
            ),
            (
                "run_lines",
                "what is expected to fail is no check",
                "        if commands and not is_expected_to_fail:",
                "        if commands:",
                "test_plan_families",
            ),
            (
                "step_reader",
                "a step with a check does not run other lines",
                "find_runs(pieces) if not self.checks else ():",
                "find_runs(pieces):",
                "test_plan_families",
            ),
            (
                "step_reader",
                "a step in an HTML block or a block without an end is an error",
                "            if line.is_example or number in self.field_lines:",
                "            if line.is_code or number in self.field_lines:",
                "test_plan_families",
            ),
            (
                "step_reader",
                "a row of fields is an error",
                "label = _read_row_label(text) or read_label(text)",
                "label = read_label(text)",
                "test_plan_families",
            ),
            (
                "plan_reader",
                "a heading that resembles a step is an error",
                "        if heading.resembles_step:",
                "        if False:",
                "test_plan_families",
            ),
            (
                "plan_reader",
                "a heading with files of its own is an error",
                "        has_work = names_work(self.document, body)\n",
                "        has_work = False\n",
                "test_plan_families",
            ),
            (
                "plan_reader",
                "a sub-step without fields is prose",
                "            if is_in_step and self._is_prose_step(headings, index, current):\n                return None\n",
                "",
                "test_plan_families",
            ),
            (
                "plan_reader",
                "a struck step is not carried out",
                "        if heading.is_struck:\n            return _Section(_Kind.STRUCK",
                "        if False:\n            return _Section(_Kind.STRUCK",
                "test_plan_families",
            ),
            (
                "plan_reader",
                "a check outside the steps is an error",
                "                self._find_stray_checks(section)\n",
                "                pass\n",
                "test_plan_families",
            ),
            (
                "plan",
                "steps with labels are numbered in their order",
                "        number = int(step.label) if are_plain else position\n        first",
                "        number = position\n        first",
                "test_plan",
            ),
            (
                "plan",
                "equal ids are an error",
                "            if step.id and first is not step:",
                "            if False:",
                "test_plan_families",
            ),
            (
                "step_matching",
                "a step is recognised by its id",
                "        if identity.id in numbers_by_id:",
                "        if False:",
                "test_step_matching",
            ),
            (
                "step_matching",
                "a step with another id is another step",
                "        return bool(self.id and step.id) and self.id != step.id",
                "        return False",
                "test_step_matching",
            ),
        ]
    ],
    *[
        Mutation(rule, file, old, new, tests)
        for rule, file, old, new, tests in [
            (
                "text behind a blank and # is reported",
                "tickets/spec_findings.py",
                "        if not words or not (is_tight or place.is_prose):",
                "        if not words or not place.is_prose:",
                "tests/tickets/test_spec_findings.py",
            ),
            (
                "an ordinary comment is not reported",
                "tickets/spec_findings.py",
                "        if not words or not (is_tight or place.is_prose):",
                "        if not words:",
                "tests/tickets/test_spec_findings.py",
            ),
            (
                "an anchor that an alias uses is meant",
                "tickets/spec_findings.py",
                "self._uses[id(node)] > 1 or",
                "",
                "tests/tickets/test_spec_findings.py",
            ),
            (
                "a key of the user's own is not nearly known",
                "tickets/spec_findings.py",
                "    most = 1 if len(known) < 8 else 2",
                "    most = 3",
                "tests/tickets/test_spec_findings.py",
            ),
            (
                "a field that the spec has is not meant by another key",
                "tickets/spec_findings.py",
                "        if letters in names and known not in others:",
                "        if letters in names:",
                "tests/tickets/test_spec_findings.py",
            ),
            (
                "keys of the user's own reach every prompt",
                "tickets/spec_prompt.py",
                "    if not spec.extra:",
                "    if True:",
                "tests/agents/test_spec_in_prompts.py",
            ),
            (
                "a remedy is shown only if it works",
                "yaml_remedies.py",
                "                if line is None or line > mark.line + added:",
                "                if True:",
                "tests/test_yaml_remedies.py",
            ),
            (
                "values of unknown keys stay as they are written",
                "tickets/spec.py",
                "        unknown[name] = entry.tree",
                "        unknown[name] = str(entry.value(source))",
                "tests/tickets/test_spec.py",
            ),
        ]
    ],
    *[
        Mutation(
            rule, f"tickets/{module}.py", old, new, "tests/tickets/test_spec_editor.py"
        )
        for module, rule, old, new in [
            (
                "spec_editor",
                "values are checked",
                "if getattr(read, name) != getattr(spec, name):",
                "if False:",
            ),
            (
                "spec_editor",
                "unknown keys are checked",
                "if self._unknown_keys() != after._unknown_keys():",
                "if False:",
            ),
            (
                "spec_editor",
                "comments are checked",
                "if self._comment_counts() - after._comment_counts():",
                "if False:",
            ),
            (
                "spec_editor",
                "the check is made",
                "    before.check(result, spec, slug)\n",
                "",
            ),
            (
                "line_edits",
                "line ends stay",
                "            or _line_end(lines, 0)\n",
                "",
            ),
            (
                "spec_editor",
                "comments move above",
                "*(indent + comment.text.strip() for comment in comments), ",
                "",
            ),
        ]
    ],
    Mutation(
        "a step waits for those that it depends on",
        "tickets/plan.py",
        "if ordered.keys() >= set(step.dependencies)",
        "if True",
        "tests/tickets/test_state.py tests/tickets/test_plan.py",
    ),
    Mutation(
        "what another step has replaced cannot be done again",
        "tickets/state.py",
        "            completed_at=None,\n            undone=(),\n",
        "            completed_at=None,\n",
        "tests/engine/test_undo.py tests/tickets/test_state.py",
    ),
    # --- workspace --------------------------------------------------------------------
    *[
        Mutation(rule, "files/atomic.py", old, new, "tests/files/test_atomic.py")
        for rule, old, new in [
            (
                "a folder is synced after a rename",
                "        sync_folder(target.parent)\n",
                "",
            ),
            (
                "a folder's sync is one of the folder",
                "            os.fsync(descriptor)\n        finally:",
                "            pass\n        finally:",
            ),
            (
                "a file is synced before its rename",
                "            os.fsync(file.fileno())\n",
                "",
            ),
            (
                "a file keeps its mode",
                "            temporary.chmod(target.stat().st_mode & 0o7777)",
                "            pass",
            ),
            (
                "a link is followed",
                "    target = path.resolve()\n    with",
                "    target = path\n    with",
            ),
            (
                "what is being written is no leftover",
                "return temporary in _being_written",
                "return False",
            ),
            (
                "a half-written file does not stay",
                "        with contextlib.suppress(OSError):\n            path.unlink()\n        raise",
                "        raise",
            ),
        ]
    ],
    *[
        Mutation(rule, file, old, new, "tests/git/test_status.py")
        for rule, file, old, new in [
            (
                "to get ready for looking runs no git",
                "git/look.py",
                "    os.environ.update(nowhere)\n",
                "",
            ),
            (
                "looking runs no monitor",
                "git/command.py",
                '    "core.fsmonitor=false",\n',
                "",
            ),
            (
                "looking heeds the settings",
                "git/look.py",
                "        self.set_persistent_git_options(c=list(settings))\n",
                "",
            ),
            (
                "looking means the repository around it",
                "git/command.py",
                'HIDDEN = ("GIT_*",)',
                "HIDDEN = ()",
            ),
        ]
    ],
    *[
        Mutation(rule, "files/ignore.py", old, new, "tests/files/test_walk.py")
        for rule, old, new in [
            (
                "a pattern for a path ends at its slashes",
                "_path_matcher(glob) if whole else _name_matcher(glob)",
                "_name_matcher(glob)",
            ),
            (
                "the last line about a path decides",
                "tuple(_rules(text))[::-1]",
                "tuple(_rules(text))",
            ),
            (
                "a line about folders is about folders",
                "(is_folder or not folders_only) and matches",
                "matches",
            ),
        ]
    ],
    Mutation(
        "what is set aside stays so",
        "files/json_file.py",
        "        sync_folder(aside.parent)\n",
        "",
        "tests/files/test_json_file.py",
    ),
    *[
        Mutation(rule, "files/paths.py", old, new, "tests/files/test_paths.py")
        for rule, old, new in [
            (
                "a path does not go up",
                'if ".." in path.parts:',
                'if path.parts[:1] == ("..",):',
            ),
            (
                "a link does not lead out",
                "if not _resolved(root, path).is_relative_to(root.resolve()):",
                "if False:",
            ),
            (
                "a folder does not lead out",
                "if not folder.is_relative_to(top):",
                "if False:",
            ),
            (
                "absolute is absolute in any spelling",
                're.compile(r"[A-Za-z]:|[/\\\\~]|',
                're.compile(r"[/~]|',
            ),
            (
                "links in a circle are refused",
                "(OSError, RuntimeError, ValueError) as error:\n        # too long",
                "(OSError, ValueError) as error:\n        # too long",
            ),
        ]
    ],
    *[
        Mutation(
            rule,
            "git/restore.py",
            old,
            new,
            "tests/git/test_restore.py tests/engine/test_journal.py",
        )
        for rule, old, new in [
            (
                "only what is as it was left is restored",
                "if _look(root, change.path, after) != after or before is after is None:",
                "if before is after is None:",
            ),
            (
                "nothing is written through a link",
                "if not _is_reached(root, place.parent) or not _make_room(place):",
                "if not _make_room(place):",
            ),
            (
                "empty folders go",
                "            # a write that was killed may have made them\n            _remove_empty_parents(root, place)\n",
                "            pass\n",
            ),
            (
                "permissions come back",
                "    if entry.permissions is not None:\n        return entry.permissions\n    now",
                "    now",
            ),
        ]
    ],
    # --- pictures ---------------------------------------------------------------------
    *[
        Mutation(rule, "llm/pictures.py", old, new, "tests/llm/test_pictures.py")
        for rule, old, new in [
            (
                "a model that is known to see no pictures is sent none",
                "if not has_pictures(request) or model.sees is not False:",
                "if True:",
            ),
            (
                "no picture is sent that providers refuse",
                "if len(data) > LARGEST:",
                "if len(data) > 9 * LARGEST:",
            ),
            (
                "a picture is known by its content",
                "if head is None or not (media_type(head) or is_meant_as_picture(name)):",
                "if head is None or not is_meant_as_picture(name):",
            ),
        ]
    ],
    # --- what a line and a setting mean -----------------------------------------------
    Mutation(
        "a typed number of a step is its label first",
        "engine/run.py",
        "        if step is not None:\n            return step.number\n        is_former",
        "        if step is not None and not label.isdecimal():\n            return step.number\n        is_former",
        "tests/test_step_labels.py",
    ),
    Mutation(
        "a step that is no longer in the plan is found by its number",
        "engine/run.py",
        "return int(label) if is_former else None",
        "return None",
        "tests/test_step_labels.py",
    ),
    Mutation(
        "an event without a label is told with its number",
        "tickets/status.py",
        'if not getattr(value, "label", ""):',
        "if False:",
        "tests/test_step_labels.py",
    ),
    Mutation(
        "a line that starts with `skip` is no guidance",
        "agents/executor.py",
        "if starts_with_skip(text):",
        "if False:",
        "tests/agents/test_skip_lines.py",
    ),
    Mutation(
        "words of a run that is closed reach no model",
        "session.py",
        "return None if said is None else self._meaning_without_run(said)",
        "return None",
        "tests/agents/test_run_lines.py",
    ),
    Mutation(
        "the rules of a project are in a prompt once",
        "engine/shown_files.py",
        "if path in self.unshown or (path in self._met and not is_more):",
        "if path in self._met and not is_more:",
        "tests/agents/test_rules_once.py",
    ),
    Mutation(
        "a file of rules is in a prompt without its blanks",
        "project/rules.py",
        "text = without_unfilled(read)",
        "text = read",
        "tests/agents/test_rules_once.py",
    ),
    Mutation(
        "a spec with an open question is not complete",
        "agents/spec_draft.py",
        "return not self.spec.missing() and not self.open_points",
        "return not self.spec.missing()",
        "tests/agents/test_spec_complete.py",
    ),
    *[
        Mutation(rule, f"agents/{file}", old, new, f"tests/agents/{tests}")
        for rule, file, old, new, tests in [
            (
                "only the approval of a diff that was shown loses words",
                "socrates.py",
                "return self._shown_loss == (seen.data, draft.spec)",
                "return self._shown_loss is not None",
                "test_spec_changes.py",
            ),
            (
                "words that would be lost are shown before they are written",
                "socrates.py",
                "if not seen.is_written or not lost_words(seen.spec, draft.spec):",
                "if True:",
                "test_spec_dialogues.py",
            ),
            (
                "a turn between two approvals counts, and a model approves no loss",
                "socrates.py",
                "        self._shown_loss = None\n        self._reread()",
                "        self._reread()",
                "test_spec_changes.py",
            ),
            (
                "a turn shows what it removes",
                "socrates.py",
                "if lost_words(before.spec, notebook.draft.spec):",
                "if False:",
                "test_spec_dialogues.py",
            ),
            (
                "complete is not said below a question",
                "socrates.py",
                "if any(mark in notebook.last_words for mark in _QUESTION_MARKS):",
                "if False:",
                "test_spec_changes.py",
            ),
            (
                "an item that is repeated is not added",
                "spec_items.py",
                "self._find(change.id) if change.id else self._find_same(change, clean)",
                "self._find(change.id)",
                "test_spec_draft.py",
            ),
            (
                "an id is not used again",
                "spec_items.py",
                "or self._was_given(change.id)",
                "",
                "test_spec_draft.py",
            ),
            (
                "a removed line of the file stays known until it is written",
                "spec_items.py",
                "if removed.written is not None:",
                "if False:",
                "test_spec_draft.py",
            ),
            (
                "an empty text replaces nothing",
                "spec_items.py",
                "if not is_placeholder(text) and text != clean(line.text):",
                "if text != clean(line.text):",
                "test_spec_draft.py",
            ),
            (
                "a line of the file that the draft has written is no change",
                "spec_items.py",
                "if tuple(lines) == self.lines:",
                "if False:",
                "test_spec_draft.py",
            ),
            (
                "a line that the user wrote as proposed is there once",
                "spec_items.py",
                "item = match or adopted.popleft()",
                "item = match",
                "test_spec_draft.py",
            ),
            (
                "a question stays open until it is answered",
                "spec_draft.py",
                "questions = [each for each in self.questions if each.id not in answered]",
                "questions = []",
                "test_spec_draft.py",
            ),
            (
                "only the person's words answer a question",
                "spec_draft.py",
                "set(map(str.strip, proposal.answered)) if is_answer else set()",
                "set(map(str.strip, proposal.answered))",
                "test_spec_draft.py",
            ),
            (
                "the user's text wins over an unwritten one",
                "spec_draft.py",
                "if getattr(now, name) == getattr(self.file, name):",
                "if True:",
                "test_spec_draft.py",
            ),
            (
                "of a list that was edited since, older notes remove nothing",
                "notebook.py",
                'is not None and "acceptance_criteria" not in edited',
                "is not None",
                "test_spec_changes.py",
            ),
        ]
    ],
    *[
        Mutation(rule, "config.py", old, new, "tests/test_model_addresses.py")
        for rule, old, new in [
            (
                "a hosted model is not asked at a local server",
                'return is_hosted_model(model or "") or not is_hosted_model(other)',
                "return True",
            ),
            (
                "a gateway on this computer is kept for hosted models",
                'return is_hosted_model(model or "") or not',
                "return not",
            ),
            (
                "an address of an earlier layer stays with its model",
                "            self.merged = {\n                name: value",
                "            _ = {\n                name: value",
            ),
        ]
    ],
    *[
        Mutation(rule, file, old, new, "tests/engine/test_missing_work.py")
        for rule, file, old, new in [
            (
                "a run without its work is not done",
                "tickets/run_outcome.py",
                "if missing or (require and (unproven or edited)):",
                "if require and (unproven or edited):",
            ),
            (
                "a change that git converted the line ends of is there",
                "engine/missing_work.py",
                '            yield plain.replace(b"\\n", b"\\r\\n")',
                "            yield plain",
            ),
            (
                "a file that a step's own check removed is not missed",
                "engine/missing_work.py",
                "if loss.place in own and loss.found.matches(own[loss.place]):",
                "if False:",
            ),
            (
                "a change that the next step did not find is missed",
                "engine/missing_work.py",
                "        losses += _losses_between(place, chain)\n",
                "",
            ),
            (
                "a test that an edited file no longer has is missed",
                "engine/missing_work.py",
                "    lost |= await _find_removed_tests(found.edited, tree, seen, past)\n",
                "",
            ),
            (
                "only a test that passed last is missed",
                "engine/missing_work.py",
                "                closed.add(test)",
                "                pass",
            ),
        ]
    ],
]
