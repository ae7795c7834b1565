"""The kinds of refusals and failures in messages, each with a reason and a remedy. `cdd
help ID` and docs/how-to/refused.md show them.
"""

from enum import Enum, StrEnum
from typing import NamedTuple


class RefusalGroup(StrEnum):
    REPLIES = "Replies of the model"
    CHECKS = "Checks of a step"
    TICKETS = "Specs, plans and settings"
    FILES = "Files"
    COMMANDS = "Commands and approval"
    RUNS = "Runs, locks and other machines"
    GIT = "Git and undo"
    MODELS = "Models and budgets"


class RefusalText(NamedTuple):
    """The texts about a kind of refusal, in Markdown."""

    group: RefusalGroup
    message: str
    """The fixed part of the message."""
    reason: str
    """What the message does not say; empty if it says all."""
    remedy: str


class Refusal(Enum):
    """A kind of refusal. Its id is its name in lower case with hyphens."""

    # --- Replies of the model ---------------------------------------------------------

    REPLY_EMPTY = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply was empty.",
        "Some servers do this when the context window is full.",
        "Type `retry`. If it happens again, choose another model or shorten the step.",
    )
    REPLY_UNFINISHED = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply is not complete.",
        "It ended in the middle of a file, usually at the model's output limit.",
        "Split the step, or choose a model with a higher output limit.",
    )
    REPLY_NO_FILES = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply does not change the files of the step.",
        "The step declares files, and the reply changes none of them in a form that"
        " cdd reads.",
        "Type `retry` and say what to change. If no change is needed, remove the"
        " step's `Files` or type `skip`.",
    )
    REPLY_UNCLEAR = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply could not be read reliably.",
        "A block has no file name or no clear end, for example. cdd does not guess.",
        "Type `retry`: the model receives the exact problem. `cdd apply --dry-run`"
        " shows how a saved reply is read.",
    )
    REPLY_CALLS_IN_TEXT = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply has tool calls or commands in its text, where they do not"
        " run.",
        "",
        "Type `retry`. If the model always does so, set `tool_calls: off`: it then"
        " sends files and edits as text.",
    )
    REPLY_FORBIDDEN = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply changes a file that it may not touch.",
        "The file is outside the project, belongs to git or cdd, is hidden from"
        " models, or is ignored by git and too large for undo.",
        "Make this change yourself, or correct the path in the plan.",
    )
    REPLY_UNSEEN = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply changes a file that it has not seen in full.",
        "A model may replace or delete only content that it was shown.",
        "Type `retry`: the next prompt shows the file. To show it from the start, list"
        " it under `Files`.",
    )
    REPLY_ABSENT = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply changes a file that does not exist.",
        "",
        "Correct the path in the plan, or let an earlier step create the file.",
    )
    REPLY_NO_MATCH = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply changes lines that are not in the file.",
        "",
        "Type `retry`: the model receives the closest lines. If all attempts fail,"
        " split the step or use a stronger model.",
    )
    REPLY_SEVERAL_MATCHES = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply changes lines that are in the file more than once.",
        "",
        "Type `retry` and name the function or class to change.",
    )
    REPLY_INCOMPLETE = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply leaves out a part of a file.",
        "It empties the file, removes more than half of its lines, or has a comment"
        " such as `# ... rest unchanged`.",
        "Type `retry`. If the file should shrink, say so in the step: remove most of"
        " `big.py`.",
    )
    REPLY_INVALID = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply would break the syntax of a file.",
        "",
        "Type `retry`: the model receives the error.",
    )
    REPLY_CONTRADICTORY = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply contradicts itself about a file.",
        "It gives a file twice with different content, or changes and deletes it.",
        "Type `retry`.",
    )
    REPLY_NAME_TAKEN = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply gives a file a name that is already taken.",
        "Another file has the name, or one that some disks treat as the same.",
        "Name the right path in the step, then type `retry`.",
    )
    REPLY_CHANGED_SINCE = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply changes a file that has changed since the model saw it.",
        "You or another program edited the file while the model worked. The edit is"
        " kept.",
        "Type `retry`: the next prompt shows the current content.",
    )
    REPLY_ENCODING = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply has characters that the encoding of the file does not"
        " allow.",
        "",
        "Convert the file to UTF-8, or ask for other characters.",
    )
    REPLY_RECORD_DAMAGED = RefusalText(
        RefusalGroup.REPLIES,
        "The model's reply cannot be applied again, because its record is damaged.",
        "The saved reply needs files under `.cdd/runs`.",
        "Type `retry` to get a new reply.",
    )
    CHANGES_REJECTED = RefusalText(
        RefusalGroup.REPLIES,
        "You rejected its changes.",
        "",
        "Type `retry` and say what should be different.",
    )

    # --- Checks of a step -------------------------------------------------------------

    NEW_FILE_MISSING = RefusalText(
        RefusalGroup.CHECKS,
        "… is declared as new, but missing",
        "The plan marks the file as `(new)`.",
        "Type `retry`, or correct the step's `Files`.",
    )
    TESTS_REMOVED = RefusalText(
        RefusalGroup.CHECKS,
        "tests are removed / weakened / skipped / no longer found",
        "A test is gone, or proves less than before the step.",
        "If that is intended, say so when the shell asks, or add `Removes tests: NAME`"
        " to the step. Otherwise type `retry`.",
    )
    TEST_SETTINGS_CHANGED = RefusalText(
        RefusalGroup.CHECKS,
        "the reply changes how tests run, and the step does not name …",
        "Settings and hooks decide which tests run.",
        "If the change is intended, add the file to the step's `Files`. Otherwise type"
        " `retry`.",
    )
    TESTS_FAILED = RefusalText(
        RefusalGroup.CHECKS,
        "`…` failed (exit code 1): test_…",
        "The tests passed before, or this step must fix them.",
        "`cdd diff SLUG --step N` shows the changes. `retry` asks the model again,"
        " with your words. List a test that a later step fixes under `May fail`.",
    )
    CHECK_UNUSABLE = RefusalText(
        RefusalGroup.CHECKS,
        "`…` cannot run / is not installed / watches files",
        "No change to the code could make this check pass, so the model is not asked.",
        "Install what is missing, or correct the step's `Verify` or `test_command`."
        " Then resume.",
    )
    CHECK_FAILED = RefusalText(
        RefusalGroup.CHECKS,
        "`…` failed (exit code N) / took too long / ended with exit code 0, but …",
        "The check ended with an error, reached `test_timeout`, or contradicts its"
        " test report.",
        "Run the command yourself. If it passes, compare the environments. If it is"
        " slow, raise `test_timeout`.",
    )
    NOTHING_DONE = RefusalText(
        RefusalGroup.CHECKS,
        "nothing changed, and no check ran / nothing was done: …",
        "No check shows that the step is done.",
        "Type `retry` and say what is missing, or type `skip`. If the step needs no"
        " change, give it `Verify: none` and no files.",
    )
    PROOF_REQUIRED = RefusalText(
        RefusalGroup.CHECKS,
        "… does not meet `require: …`",
        "The run requires a stronger verification than the step has.",
        "Add a test to the step and run it again: its reply is saved. Or set `require:"
        " off`.",
    )

    # --- Specs, plans and settings ----------------------------------------------------

    NOT_YAML = RefusalText(
        RefusalGroup.TICKETS,
        "FILE:LINE: not YAML / is a mapping of keys / a value cannot be read",
        "Usual causes: a tab, a repeated key, an unquoted `: `.",
        "Correct the line that the message names.",
    )
    SETTINGS_INVALID = RefusalText(
        RefusalGroup.TICKETS,
        "unknown setting / must be …",
        "A name is unknown, or a value is impossible. Nothing ran.",
        "Correct the line that the message names. `/settings` shows all settings.",
    )
    TICKET_UNUSABLE = RefusalText(
        RefusalGroup.TICKETS,
        "There is no ticket … / cannot be the name of a ticket / already exists",
        "The name matches no ticket or several, is taken, or is no valid folder name"
        " on every system.",
        "`cdd list` shows the tickets. Type the whole slug, or a path such as"
        " `tickets/feature-login`.",
    )
    SPEC_UNUSABLE = RefusalText(
        RefusalGroup.TICKETS,
        "has no spec.yaml / … is empty / is not complete / cannot be edited safely",
        "It lacks what a plan needs, or cdd cannot change one value alone.",
        "Open it with `/socrates SLUG` or in an editor, and add what the message"
        " names.",
    )
    SPEC_CHANGED = RefusalText(
        RefusalGroup.TICKETS,
        "spec.yaml was changed by another program; nothing was written",
        "Your edit is kept.",
        "Send the line again: it then applies to the current file.",
    )
    PLAN_INVALID = RefusalText(
        RefusalGroup.TICKETS,
        "plan.md:LINE: …",
        "Usual causes: a repeated number, a missing dependency, a cycle, a path"
        " outside the project, a check that cannot start.",
        "Correct the lines that the message names. `cdd plan check SLUG` checks the"
        " plan and runs nothing.",
    )
    PLAN_CHANGED = RefusalText(
        RefusalGroup.TICKETS,
        "The saved state belongs to another plan / has changed since",
        "A completed step was edited or renumbered in plan.md, or the plan changed"
        " while a proposal waited.",
        "Restore the completed steps in plan.md, undo them, or start over with `cdd"
        " exec SLUG --start-over`.",
    )
    PLAN_NOT_EDITABLE = RefusalText(
        RefusalGroup.TICKETS,
        "… in the plan / would change other parts of the plan",
        "Other text would change, or the step is running or completed.",
        "Undo the step first, or edit plan.md in an editor.",
    )
    NOTHING_TO_PLAN = RefusalText(
        RefusalGroup.TICKETS,
        "has no plan / There is nothing to plan / no proposed plan",
        "",
        "Create a plan with `cdd plan SLUG`.",
    )
    ACTION_PLAN_INVALID = RefusalText(
        RefusalGroup.TICKETS,
        "FILE:LINE: unknown action / an action is …",
        "Nothing ran.",
        "Correct the line. `cdd help run` shows the format.",
    )
    STATE_UNREADABLE = RefusalText(
        RefusalGroup.TICKETS,
        "execution-state.json is not readable / … is damaged",
        "A saved file is incomplete, damaged or from another ticket. The project's"
        " files were not changed.",
        "Restore the file from a backup or git. cdd renames a damaged state file and"
        " rebuilds it if it can.",
    )
    WRITTEN_BY_NEWER = RefusalText(
        RefusalGroup.TICKETS,
        "… was written by a newer version of cdd",
        "This version cannot read the file and leaves it unchanged.",
        "Update cdd.",
    )

    # --- Files ------------------------------------------------------------------------

    OUTSIDE_PROJECT = RefusalText(
        RefusalGroup.FILES,
        "… leads outside the project / is absolute / is not a usable path",
        "cdd stays inside the project, links included, and uses only names that every"
        " system accepts.",
        "Write the path relative to the project's root.",
    )
    HIDDEN_FILE = RefusalText(
        RefusalGroup.FILES,
        "… is hidden from models",
        "It looks like a secret, or an ignore file such as `.cddignore` lists it.",
        "If it is not a secret, `/context +PATH` in the shell shows it to the models"
        " of this run.",
    )
    UNREADABLE_FILE = RefusalText(
        RefusalGroup.FILES,
        "… is not shown: … / could not be read / does not exist",
        "It is missing, binary or too large, or you may not read it.",
        "Correct the path or the permissions. Of a large file, name a part:"
        " `@file.py:10-40`.",
    )
    WRONG_ENCODING = RefusalText(
        RefusalGroup.FILES,
        "… is not UTF-8 text / has no …",
        "",
        "Save the file as UTF-8.",
    )
    DISK = RefusalText(
        RefusalGroup.FILES,
        "… could not be written / created / read / renamed",
        "Usual causes: permissions, a full disk, a read-only or missing folder.",
        "Correct the cause and repeat the command. Everything saved earlier is"
        " complete.",
    )
    BAD_PATTERN = RefusalText(
        RefusalGroup.FILES,
        "… is not a usable pattern / is not a regular expression",
        "It is invalid or takes too long.",
        "Correct the pattern.",
    )
    PICTURE_UNUSABLE = RefusalText(
        RefusalGroup.FILES,
        "… is not a png, jpeg, gif or webp picture / is too large",
        "Models limit the format, size and number of pictures.",
        "Convert or shrink the picture, or send fewer.",
    )

    # --- Commands and approval --------------------------------------------------------

    NOT_APPROVED = RefusalText(
        RefusalGroup.COMMANDS,
        "… was not approved / No answer came",
        "You refused, or no one could answer. Exit code 3.",
        "Resume and answer. Without a terminal, approve changes of files with `--yes`,"
        " and list programs under `commands.allow`.",
    )
    COMMAND_REFUSED = RefusalText(
        RefusalGroup.COMMANDS,
        "The command … / `…` is not allowed",
        "Commands run without a shell. Pipes, `;`, redirections and programs off the"
        " list are refused or need approval.",
        "Put the commands into a script of the project, add the program to"
        " `commands.allow`, or set `commands.mode: ask`.",
    )
    ACTION_FAILED = RefusalText(
        RefusalGroup.COMMANDS,
        "An action failed: …",
        "",
        "Correct the cause that the message names and run it again.",
    )
    NOT_TRUSTED = RefusalText(
        RefusalGroup.COMMANDS,
        "… wants to use settings that need your trust",
        "The project sets commands, addresses or keys that could harm you.",
        "Read them with `cdd trust`. Then trust them with `cdd trust --give`, or for"
        " one run with `--trust`.",
    )
    EXTENSION_FAILED = RefusalText(
        RefusalGroup.COMMANDS,
        "The command / adapter … failed",
        "",
        "Report it to the author of the package, or uninstall it.",
    )
    WEB_PAGE = RefusalText(
        RefusalGroup.COMMANDS,
        "… is not read / could not be read / answers …",
        "cdd reads only public http and https pages with text, within limits of time"
        " and size.",
        "Open the page yourself and paste what matters.",
    )
    NO_EDITOR = RefusalText(
        RefusalGroup.COMMANDS,
        "No editor found / … could not be started",
        "",
        "Set `VISUAL` to an installed editor.",
    )

    # --- Runs, locks and other machines -----------------------------------------------

    IN_USE = RefusalText(
        RefusalGroup.RUNS,
        "Another cdd is … / has locked …",
        "Two processes would overwrite each other.",
        "Wait for the other one or stop it. The lock ends with its process.",
    )
    LOCK_LOST = RefusalText(
        RefusalGroup.RUNS,
        "The lock of the run is gone",
        "The folder of the run was deleted or replaced.",
        "Resume with `cdd exec SLUG`.",
    )
    RUN_ELSEWHERE = RefusalText(
        RefusalGroup.RUNS,
        "… runs elsewhere / was pushed / is held by …",
        "Only one place may continue a run.",
        "Continue it there, or fetch it with `cdd pull SLUG`. If that machine is lost:"
        " `cdd pull SLUG --take-over`.",
    )
    RUN_INCOMPLETE = RefusalText(
        RefusalGroup.RUNS,
        "The received run cannot be used: …",
        "Parts are missing or damaged, or lead outside the project. Nothing was"
        " written.",
        "Push it again with the same version of cdd.",
    )
    TREE_DIFFERS = RefusalText(
        RefusalGroup.RUNS,
        "These files changed / differ …",
        "The run expects other content. cdd did not overwrite yours.",
        "Commit, stash or move your files, then repeat the command.",
    )
    WORKTREE_UNUSABLE = RefusalText(
        RefusalGroup.RUNS,
        "There is a branch … already / … was deleted / Not committed in the run's"
        " worktree",
        "The worktree or branch differs from what cdd expects, or holds work that"
        " landing would lose. Nothing was changed.",
        "Do what the message says: commit there, rename the branch, or delete the rest"
        " of the run. Then repeat the command.",
    )
    NOTHING_TO_MOVE = RefusalText(
        RefusalGroup.RUNS,
        "… has nothing to land / no worktree / unfinished steps / no run / no"
        " completed step",
        "",
        "`cdd board` shows the state of all runs.",
    )
    SECRET_NOT_SENT = RefusalText(
        RefusalGroup.RUNS,
        "… seem to hold a secret, so they are not sent",
        "Secrets never leave this machine with a run.",
        "Move the secret into an environment variable, or ignore the file with git.",
    )
    WORKER_UNUSABLE = RefusalText(
        RefusalGroup.RUNS,
        "No scheduler answers / No worker can run it / The worker failed",
        "Completed steps are kept.",
        "Correct what the message names and run the command again.",
    )
    PROCESS_FAILED = RefusalText(
        RefusalGroup.RUNS,
        "The run's process … / Internal error",
        "",
        "Run the command again with `--debug` and report what it prints.",
    )

    # --- Git and undo -----------------------------------------------------------------

    GIT_UNUSABLE = RefusalText(
        RefusalGroup.GIT,
        "git … failed / git was not found / is not in a git repository",
        "",
        "Run the same command yourself. `cdd doctor` checks git.",
    )
    NOT_COMMITTED = RefusalText(
        RefusalGroup.GIT,
        "It was not committed: …",
        "The commit would contain unverified changes, or be a part of a merge or"
        " rebase. The step stays completed.",
        "Commit by hand, or correct the cause and run again.",
    )
    COMMIT_FAILED = RefusalText(
        RefusalGroup.GIT,
        "It was not committed: git … failed / The repository is locked / git does not"
        " know who you are",
        "The step is pending again: its files are restored, and its reply is saved.",
        "Correct the cause and resume: the model is not asked again.",
    )
    BRANCH_CONFLICT = RefusalText(
        RefusalGroup.GIT,
        "… conflicts with …",
        "The run's branch and yours changed the same lines.",
        "Merge your branch in the run's worktree, then land again.",
    )
    PUSH_REFUSED = RefusalText(
        RefusalGroup.GIT,
        "… does not accept refs/cdd/…",
        "The remote refused the reference, or its address is not usable.",
        "Use a remote that you may write to, or ask its administrator to allow"
        " `refs/cdd/*`.",
    )
    CANNOT_UNDO = RefusalText(
        RefusalGroup.GIT,
        "… cannot be undone / There is no …",
        "The record is missing, a later change builds on this one, or it is still in"
        " progress.",
        "`cdd undo --list` shows what can be undone. Undo the newest change first.",
    )

    # --- Models and budgets -----------------------------------------------------------

    BUDGET_SPENT = RefusalText(
        RefusalGroup.MODELS,
        "The budget is too small to continue",
        "The next call could cost more than the rest. Exit code 3.",
        "Raise `budget.usd` or `budget.tokens` and resume.",
    )
    UNKNOWN_PRICE = RefusalText(
        RefusalGroup.MODELS,
        "`budget.usd` cannot be checked, because the price of … is unknown",
        "",
        "Limit `budget.tokens` instead, or choose a model with a known price.",
    )
    MODEL_FAILED = RefusalText(
        RefusalGroup.MODELS,
        "… failed / sent an empty reply / gave no usable answer",
        "The server answered, but not with a usable reply.",
        "Resume: nothing is lost. If it happens again, try another model.",
    )
    NO_MODEL = RefusalText(
        RefusalGroup.MODELS,
        "No model is configured / There is no model …",
        "None is set for this role, or the chosen adapter cannot call it.",
        "Choose one with `/model` in the shell or with `--model`. `cdd doctor` shows"
        " what is set up.",
    )
    MODEL_KEY = RefusalText(
        RefusalGroup.MODELS,
        "No API key for … / The key was rejected",
        "",
        "Set the variable that the message names, or enter the key in `/model`.",
    )
    MODEL_NOT_FOUND = RefusalText(
        RefusalGroup.MODELS,
        "… does not know the model …",
        "",
        "`/model` in the shell lists the names that the server offers.",
    )
    MODEL_REQUEST = RefusalText(
        RefusalGroup.MODELS,
        "… rejected the request",
        "",
        "Read the quoted answer. Often a setting such as `temperature` or `effort` is"
        " not allowed for this model.",
    )
    WINDOW_TOO_SMALL = RefusalText(
        RefusalGroup.MODELS,
        "… does not fit into the model's window",
        "cdd never cuts a request silently.",
        "Split the step, leave files out (`/context`), or use a model with a larger"
        " window. For your own server, raise its window.",
    )
    RATE_LIMITED = RefusalText(
        RefusalGroup.MODELS,
        "… limits the rate of requests / the quota is used up",
        "The provider asks for a longer wait than cdd allows. Exit code 75.",
        "Run the same command later: it resumes. If the quota is used up, add credit.",
    )
    MODEL_UNREACHABLE = RefusalText(
        RefusalGroup.MODELS,
        "… could not be reached / The proxy … / The reply broke off",
        "Retries did not help. Exit code 75 if waiting can help.",
        "Check the address, the proxy and the certificate with `cdd doctor`, then"
        " resume.",
    )
    PICTURES_REFUSED = RefusalText(
        RefusalGroup.MODELS,
        "… does not accept pictures",
        "",
        "Leave the picture out, or use a model that accepts pictures.",
    )
    SCRIPT_ENDED = RefusalText(
        RefusalGroup.MODELS,
        "The script / record has no reply …",
        "",
        "Add a reply to the script, or record again with `--record`.",
    )
    ENVIRONMENT_UNUSABLE = RefusalText(
        RefusalGroup.MODELS,
        "… in the environment is no usable … / cannot be read",
        "The variable is for a proxy, an address or a certificate.",
        "Correct or unset the variable.",
    )

    @property
    def id(self) -> str:
        return self.name.lower().replace("_", "-")

    @property
    def text(self) -> RefusalText:
        return self.value

    @property
    def reference(self) -> str:
        """A sentence that names the command for its explanation."""
        return f"See `cdd help {self.id}`."

    @classmethod
    def find(cls, refusal_id: str) -> "Refusal | None":
        return cls.__members__.get(refusal_id.upper().replace("-", "_"))


def id_of(refusal: Refusal | None) -> str:
    """Return the id; empty for None."""
    return refusal.id if refusal else ""
