"""Shell commands in a reply: which of them would change files of the project."""

from pathlib import Path

import pytest

from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import ReplyRefused, WholeFile
from cdd_agent.changes.parse import parse_reply
from tests.changes.applying import PROJECT, write
from tests.support.tables import each_row

DIFF = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Calc\n+# Sum\n"
CHANGES = {
    "a here-document": "cat > src/new.py <<'EOF'\nx = 1\nEOF",
    "a here-document, redirected behind its mark": "cat <<EOF > src/new.py\nx\nEOF",
    "a here-document for tee": "cat <<EOF | tee src/new.py\nx\nEOF",
    "tee": "echo x | tee -a README.md",
    "echo": "echo 'x = 1' >> src/calc.py",
    "printf": "printf 'x' > NEWS.md",
    "a program's output into a file of the project": "black --version > README.md",
    "a program's output into a file of the step": "make text > GENERATED.md",
    "sed": "sed -i 's/a/b/' src/calc.py",
    "sed of BSD": "sed -i '' -e 's/a/b/' src/calc.py",
    "sed, its long option": "sed --in-place s/a/b/ src/calc.py",
    "perl": "perl -pi -e 's/a/b/' src/calc.py",
    "git rm": "git rm README.md",
    "git rm of a folder": "git rm -r src",
    "git mv": "git mv README.md INDEX.md",
    "rm": "rm -f README.md",
    "rm with a pattern": "rm src/*.py",
    "rm of several": "rm build.log README.md",
    "mv": "mv src/calc.py src/sum.py",
    "cp onto": "cp src/calc.py src/other.py",
    "touch": "mkdir -p pkg && touch pkg/__init__.py",
    "in a folder": "cd src\nrm calc.py",
    "after other commands": "pip install x && rm README.md",
    "in a loop": "for f in a b; do rm README.md; done",
    "with sudo": "sudo rm README.md",
    "behind a prompt": "$ pytest\n1 failed\n$ rm README.md",
    "a patch for git": f"git apply <<'EOF'\n{DIFF}EOF",
    "a patch": f"patch -p1 <<'EOF'\n{DIFF}EOF",
    "git checkout": "git checkout HEAD~1 -- README.md",
    "truncate": "truncate -s 0 README.md",
    "awk": "awk -i inplace '{print}' README.md",
    "a path of the command": "/bin/rm README.md",
    "not an alias": "\\rm README.md",
    "with a variable": "env A=1 rm README.md",
    "a shell in a shell": "bash -c 'echo x > README.md'",
    "find with sed": "find . -name '*.py' -exec sed -i s/a/b/ {} +",
    "xargs with sed": "grep -rl a src | xargs -0 sed -i 's/a/b/'",
}
EXPLANATIONS = {
    "installing": "pip install -r requirements.txt\nnpm run build",
    "testing": "pytest -q 2>&1 | tail -20",
    "git": "git add -A && git commit -m 'Write README.md' && git push",
    "git's index alone": "git rm --cached README.md\ngit restore --staged README.md",
    "output to nowhere": "pytest > /dev/null 2>&1",
    "output to a temporary file": "pytest > /tmp/out.txt\nrm /tmp/out.txt",
    "output to a log": "pytest > results.log",
    "the user's own files": "echo 'alias t=pytest' >> ~/.bashrc\nrm $HOME/x",
    "what git ignores": "rm -rf build dist/\necho x > build/a.txt",
    "what is not there": "rm -f old.py",
    "a folder": "mkdir -p src/inner",
    "the user's secrets": "cp .env.example .env\necho 'KEY=1' > .env",
    "text that looks like commands": "cat <<EOF\nrm README.md\nEOF",
    "output that looks like commands": "$ ls\nrm README.md",
    "sed that only prints": "sed -n 1,5p src/calc.py",
    "a placeholder": "git cherry-pick <first>^.. <last>\ncat <file> README.md",
    "a placeholder of words": "echo <your name> README.md",
    "a name in quotes": "echo 'rm README.md'",
    "a variable": "rm $FILE",
    "outside": "rm ../README.md",
    "git's own folder": "rm -rf .git",
    "git checkout of a branch": "git checkout -b src\ngit checkout README",
    "find for caches": "find . -name '*.pyc' -delete\nfind . -name x | xargs rm -rf",
    "find that only prints": "find . -name '*.py' -exec sed -n 1p {} +",
    "a shell that only prints": "bash -c 'cat README.md'",
    "touch of a file": "touch src/calc.py",
}
GOOD = "```python:src/sum.py\nadd = sum\n```\n"


@pytest.fixture
def known(tmp_path: Path) -> ProjectNames:
    files = {**PROJECT, ".gitignore": "build/\ndist/\n", "build/x.o": "x"}
    write(tmp_path, {**files, ".git/HEAD": "ref: refs/heads/main\n"})
    return ProjectNames.collect(tmp_path, ["src/sum.py", "GENERATED.md"])


@each_row("commands", CHANGES.values(), ids=CHANGES)
def test_commands_that_change_a_file_refuse_the_reply(
    commands: str, known: ProjectNames
) -> None:
    languages = ["bash", "sh", "console", "shell", "zsh"]
    if commands.startswith("$"):
        languages.append("")
    for language in languages:
        reply = f"I run:\n\n```{language}\n{commands}\n```\n\n{GOOD}"
        with pytest.raises(ReplyRefused) as caught:
            parse_reply(reply, known)
        assert "Line 3 " in caught.value.message
        assert "not run" in caught.value.hint


@each_row("commands", EXPLANATIONS.values(), ids=EXPLANATIONS)
def test_other_commands_are_explanation(commands: str, known: ProjectNames) -> None:
    reply = parse_reply(f"Then run:\n\n```bash\n{commands}\n```\n\n{GOOD}", known)
    assert reply.edits == (WholeFile("src/sum.py", "add = sum\n"),)


@each_row("commands", CHANGES.values(), ids=CHANGES)
def test_with_tools_commands_are_explanation(
    commands: str, known: ProjectNames, tmp_path: Path
) -> None:
    known = ProjectNames.collect(tmp_path, has_tools=True)
    reply = parse_reply(f"I ran:\n\n```bash\n{commands}\n```\n\n{GOOD}", known)
    assert reply.edits == (WholeFile("src/sum.py", "add = sum\n"),)


@each_row("commands", CHANGES.values(), ids=CHANGES)
def test_commands_in_a_named_file_are_its_content(
    commands: str, known: ProjectNames
) -> None:
    (edit,) = parse_reply(f"````bash:bin/do.sh\n{commands}\n````\n", known).edits
    assert edit == WholeFile("bin/do.sh", f"{commands}\n")


def test_commands_for_what_the_reply_does_itself_are_explanation(
    known: ProjectNames,
) -> None:
    commands = "```bash\ntouch src/sum.py\ngit rm README.md\n```\n"
    patch = "*** Begin Patch\n*** Delete File: README.md\n*** End Patch\n"
    call = "<delete_file>\n<path>README.md</path>\n</delete_file>"
    for deletion in (patch, f"{call}\n"):
        reply = parse_reply(f"{commands}\n{GOOD}\n{deletion}", known)
        assert len(reply.edits) == 2
    with pytest.raises(ReplyRefused):
        parse_reply(f"{commands}\n{GOOD}", known)


def test_code_blocks_in_the_file_of_a_call_change_nothing(known: ProjectNames) -> None:
    content = "# How\n\n```sh\nrm README.md\n```\n\n```text:config.toml\nx\n```\n"
    call = (
        f"<write_to_file>\n<path>HOW.md</path>\n<content>\n{content}</content>\n"
        "</write_to_file>\n"
    )
    assert parse_reply(f"{call}\n{GOOD}", known).edits == (
        WholeFile("HOW.md", content),
        WholeFile("src/sum.py", "add = sum\n"),
    )
    with pytest.raises(ReplyRefused, match=r"config\.toml"):
        parse_reply(f"{call}\n```bash\nrm config.toml\n```\n", known)


@each_row(
    "commands",
    [
        "Set-Content -Path NEWS.md -Value 'x'",
        "'x' | Out-File NEWS.md",
        "Remove-Item README.md -Force",
        "New-Item -ItemType File -Path NEWS.md",
        "Move-Item -Path README.md -Destination INDEX.md",
        "del README.md",
    ],
)
def test_powershell(commands: str, known: ProjectNames) -> None:
    with pytest.raises(ReplyRefused, match=r"NEWS|README"):
        parse_reply(f"```powershell\n{commands}\n```\n\n{GOOD}", known)
    folder = "New-Item -ItemType Directory -Path src/inner"
    assert parse_reply(f"```powershell\n{folder}\n```\n\n{GOOD}", known).edits
