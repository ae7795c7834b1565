"""Which files models do not see: by name, by content, by ignore files."""

import os
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.files.hidden_from_models import (
    BY_NAME,
    HiddenFiles,
    is_secret_path,
    secret_in,
)
from cdd_agent.files.walk import walk
from tests.support.tables import each_row

KEY = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkq" * 4 + "\n"
SERVICE = '{"type": "service_account", "private_key": "x"}'
SECRET = """
    .env .ENV .env.local .env.production .envrc .env~ .env.bak .env.keys prod.env
    tests/.env .dev.vars .flaskenv.env .netrc _netrc .npmrc .pypirc .pgpass .my.cnf
    .htpasswd .git-credentials .dockercfg .vault-token .terraformrc .bash_history
    credentials config/credentials.yml credentials.json CREDENTIALS.JSON
    prod.credentials.json aws_credentials accessKeys.csv auth.json
    client_secret_1.json secrets.yaml secrets.yml secrets.json secrets.toml
    secret.yaml .secrets.toml secrets.production.yaml service-account.json
    serviceAccountKey.json gcp-key.json terraform.tfvars prod.auto.tfvars.json
    terraform.tfstate terraform.tfstate.backup server.pem server.KEY a.p12 a.pfx
    release.keystore a.jks a.ppk AuthKey_1.p8 db.kdbx id_rsa id_ed25519
    id_ed25519_sk id_rsa.bak deploy_rsa config/master.key .aws/credentials
    home/.aws/config .kube/config kubeconfig prod.kubeconfig .docker/config.json
    .ssh/id_work .gnupg/x .cargo/credentials.toml .m2/settings.xml
    .config/gcloud/credentials.db key.properties vault_password.txt
    credentials.json~ credentials.json.bak #credentials.json# .credentials.json.swp
    terraform.tfvars.old .netrc.bak .npmrc~ .terraform.tfvars.swp server.key.orig
    .claude/.credentials.json local.settings.json .aws/sso/cache/x.json .git/config
    /proc/12/environ /proc/self/task/3/environ my_private.pem
"""
SHOWN = """
    .env.example .env.sample .env.template .env.dist example.env env environment.py
    secrets.example.yaml terraform.tfvars.example credentials.sample.json
    credentials.yml.enc sealed-secrets.yaml id_rsa.pub .ssh/id_rsa.pub .ssh/config
    credentials.py secrets.py key.py keys.py test_credentials.py Credentials.tsx
    secret.go kubeconfig.go service_account.py secrets.test.ts
    src/secrets/manager.py tests/fixtures/key.pem tests/credentials.json
    spec/fixtures/server.key package.json config.json settings.py tokens.json
    keyboard.json monkey docs/secrets.md
    locales/en/auth.json src/i18n/de/credentials.json translations/secrets.yaml
    public.pem cert.pem ca-cert.pem fullchain.pem server_cert.pem .secrets.baseline
    credentials.py.bak secrets.ts~ .gitconfig.bak notes.txt.old
"""


def test_secrets_are_known_by_their_names() -> None:
    assert [name for name in SECRET.split() if not is_secret_path(name)] == []
    assert [name for name in SHOWN.split() if is_secret_path(name)] == []


@each_row(
    ("path", "content", "is_secret"),
    [
        ("deploy.txt", KEY, True),
        ("config.yaml", f"tls:\n  key: |\n    {KEY}", True),
        ("app.json", f'{{"key": "{KEY[:-1]}"}}'.replace("\n", "\\n"), True),
        ("a.txt", KEY.replace("PRIVATE", "RSA PRIVATE"), True),
        ("a.txt", KEY.replace("PRIVATE", "OPENSSH PRIVATE"), True),
        ("a.txt", KEY.replace("\nMI", "\nProc-Type: 4,ENCRYPTED\nA: b\n\nMI"), True),
        ("a.txt", KEY.replace("\n", "\r\n"), True),
        ("prod.json", SERVICE, True),
        ("wg0.conf", f"[Interface]\nPrivateKey = {'A' * 43}=\n", True),
        (".yarnrc.yml", "npmAuthToken: npm_123\n", True),
        ("NuGet.config", '<add key="ClearTextPassword" value="x" />', True),
        (".cdd/config.yaml", "request: {headers: {X: y}}\n", True),
        (".cdd/config.yaml", "approval: ask\n", False),
        ("config.yaml", "headers: {X: y}\n", False),
        (".yarnrc.yml", "npmAuthToken: ${TOKEN}\n", False),
        ("docs/tls.md", "Begins with `-----BEGIN PRIVATE KEY-----`.", False),
        ("check.py", "if '-----BEGIN PRIVATE KEY-----' in text:\n    warn()", False),
        ("tests/fixtures/a.txt", KEY, False),
        ("test/test_jwt.py", f'KEY = """{KEY}"""', False),
        ("a.txt", KEY.replace("PRIVATE", "PUBLIC"), False),
        ("app.json", '{"private_key": null}', False),
    ],
)
def test_secrets_are_known_by_their_content(
    path: str, content: str, is_secret: bool
) -> None:
    assert bool(secret_in(path, content.encode())) is is_secret


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return root


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


@each_row(
    ("lists", "hidden", "shown"),
    [
        ({".cddignore": "private/\n*.log"}, "private/a.py a.log x/b.log", "a.py"),
        ({".cddignore": "*.md\n!README.md"}, "a.md x/b.md", "README.md x/README.md"),
        ({".cddignore": "/a.py"}, "a.py", "x/a.py"),
        ({"x/.cddignore": "a.py"}, "x/a.py x/y/a.py", "a.py"),
        (
            {".cddignore": "*.py", "x/.cddignore": "!b.py"},
            "a.py x/a.py",
            "x/b.py x/y/b.py",
        ),
        ({".aiderignore": "a.py"}, "a.py", "b.py"),
        ({".cursorignore": "a.py"}, "a.py", "b.py"),
        ({".geminiignore": "a.py"}, "a.py", "b.py"),
        ({"x/.aiexclude": "a.py"}, "x/a.py", "a.py"),
        ({"x/.aiexclude": ""}, "x/a.py x/y/b.py", "a.py"),
        ({".cursorignore": "*.py", ".cddignore": "!a.py"}, "b.py", "a.py"),
        ({".git/info/exclude": "a.py"}, "a.py x/a.py", "b.py"),
        ({".git/info/exclude": "*.py", ".gitignore": "!a.py"}, "b.py", "a.py"),
        ({".gitignore": "a.py"}, "", "a.py"),
        ({".cddignore": "geh\u00e4im/"}, "geh\u00e4im/a geha\u0308im/a", "gehaim/a"),
        ({".cddignore": "geha\u0308im/"}, "geh\u00e4im/a geha\u0308im/a", "gehaim/a"),
        ({".cddignore": "!.env"}, ".env", "a.py"),
    ],
)
def test_ignore_files_keep_files_from_models(
    project: Path, lists: dict[str, str], hidden: str, shown: str
) -> None:
    names = [*hidden.split(), *shown.split()]
    write(project, **dict.fromkeys(names, "text"), **lists)
    files = HiddenFiles(project)
    assert [name for name in names if files.why(name)] == hidden.split()
    if ".gitignore" in lists or ".env" in names:
        return
    assert {entry.text for entry in walk(project)}.isdisjoint(hidden.split())
    assert {entry.text for entry in walk(project)}.issuperset(shown.split())


@each_row(
    ("settings", "place"),
    [
        ({}, ".config/git/ignore"),
        ({".gitconfig": "[core]\n\texcludesFile = ~/mine\n"}, "mine"),
        ({".gitconfig": '[core] excludesfile = "~/mine" # why\n'}, "mine"),
        (
            {".gitconfig": "[include]\npath = more", "more": "[CORE]\nexcludesfile=m"},
            "m",
        ),
        ({".config/git/config": "[core]\nexcludesfile = ~/mine"}, "mine"),
    ],
)
def test_the_users_list_for_all_repositories_counts(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    place: str,
) -> None:
    home = project.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    write(home, **settings, **{place: "*.local.md\nCLAUDE.md\n"})
    write(project, **{"a.local.md": "x", "CLAUDE.md": "Rules"})
    files = HiddenFiles(project)
    assert files.why("a.local.md") == "it is listed in git's core.excludesFile"
    assert files.why("CLAUDE.md") == ""
    assert "a.local.md" not in {entry.text for entry in walk(project)}


def test_what_a_step_replaced_is_hidden_and_the_report_is_not(project: Path) -> None:
    hidden = HiddenFiles(project)
    for folder in (
        ".cdd/runs/feature-x",
        ".cdd/runs/feature-x/earlier-1",
        ".cdd/runs/.changes/0001",
    ):
        assert hidden.why(f"{folder}/step-01/attempt-1/before-0")
        for store in ("versions", "contents", "kept"):
            assert hidden.why(f"{folder}/{store}/0123456789")
        assert not hidden.why(f"{folder}/report.md")


@each_row("codec", ["utf-16", "utf-16-be", "utf-32"])
@each_row("before", ["", "notes\n", "\u6f22" * 9_000 + "\n"])
def test_a_key_in_wide_characters_is_a_secret(codec: str, before: str) -> None:
    assert secret_in("notes.txt", f"{before}{KEY}".encode(codec))


def test_a_reason_names_the_list(project: Path) -> None:
    write(project, **{"x/.cddignore": "a.py", "x/a.py": "", "notes.txt": KEY})
    files = HiddenFiles(project)
    assert files.why("x/a.py") == "it is listed in x/.cddignore"
    assert files.why(".env") == BY_NAME
    assert files.why("notes.txt") == "it holds a private key"
    assert HiddenFiles(project, allowed=["x/a.py"]).why("x/a.py") == ""


def test_links_and_spellings_lead_to_the_file(project: Path) -> None:
    write(project, **{".env": "A=1", "private/a.py": "", ".cddignore": "private/"})
    (project / "notes.txt").symlink_to(".env")
    (project / "link").symlink_to("private")
    (project / "out").symlink_to(os.path.relpath(project.parent / ".env", project))
    (project.parent / ".env").write_text("A=1")
    files = HiddenFiles(project)
    for name in ("notes.txt", "link", "link/a.py", "out", "./.env", "x/../.env"):
        assert files.why(name), name
    assert list(walk(project, PurePosixPath("link"))) == []


@each_row("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_key_is_a_secret_in_any_encoding(codec: str) -> None:
    text = f"a note\n-----BEGIN PRIVATE KEY-----\n{'A' * 64}\n"
    assert secret_in("notes.txt", text.encode(codec))
