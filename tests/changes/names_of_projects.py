"""Names of files that stand at the root, or in a folder of programs, of public projects
in many languages.
"""

_WORDS = """
AUTHORS BACKERS BUGS CHANGELOG CHANGES COMMITTERS CONTRIBUTING CONTRIBUTORS COPYING
COPYING.LESSER COPYRIGHT CREDITS ChangeLog FAQ FUNDING HACKING HISTORY INSTALL
KNOWN_ISSUES LICENCE LICENSE LICENSE-APACHE LICENSE-MIT LICENSE.APACHE-2.0 LICENSE_BOOST
MAINTAINERS MANIFEST META NEWS NOTICE OWNERS OWNERS_ALIASES PATENTS README README-ja
RELEASE RELEASES ROADMAP SECURITY SUPPORT THANKS TODO UNLICENSE UPGRADING VERSION
WHATSNEW ABOUT-NLS CODEOWNERS DCO GOVERNANCE README.md README.rst README.txt README.adoc
README.org CHANGELOG.md HISTORY.rst NEWS.md CHANGES.rst CHANGES.txt LICENSE.txt
LICENSE.md CODE_OF_CONDUCT.md CONTRIBUTING.rst SECURITY.md AUTHORS.rst CITATION.cff
CITATION.bib codemeta.json AGENTS.md CLAUDE.md llms.txt humans.txt robots.txt CNAME
_config.yml _redirects _headers mkdocs.yml book.toml docusaurus.config.js Doxyfile
Doxyfile.in conf.py make.bat Makefile GNUmakefile makefile Makefile.am Makefile.in
Makefile.PL Makefile.win configure configure.ac configure.in aclocal.m4 autogen.sh
bootstrap buildconf config.guess config.sub config.h.in install-sh ltmain.sh missing
depcomp compile mkinstalldirs CMakeLists.txt CMakePresets.json meson.build
meson_options.txt meson.options SConstruct SConscript wscript waf premake5.lua xmake.lua
Jamroot Jamfile Kconfig Kbuild BUILD BUILD.bazel BUCK WORKSPACE WORKSPACE.bazel
MODULE.bazel .bazelrc .bazelversion .buckconfig BUILD.gn .gn DEPS vcpkg.json
conanfile.py conanfile.txt justfile Justfile Taskfile.yml magefile.go Tupfile
build.ninja build.sh build.zig build.zig.zon build.sbt build.xml pom.xml ivy.xml
build.gradle build.gradle.kts settings.gradle gradle.properties gradlew gradlew.bat mvnw
mvnw.cmd project.clj deps.edn shadow-cljs.edn bb.edn Cargo.toml Cargo.lock build.rs
clippy.toml rustfmt.toml rust-toolchain rust-toolchain.toml deny.toml go.mod go.sum
go.work main.go tools.go .golangci.yml .goreleaser.yaml glide.lock Gopkg.toml setup.py
setup.cfg pyproject.toml requirements.txt requirements-dev.txt constraints.txt Pipfile
Pipfile.lock poetry.lock uv.lock tox.ini noxfile.py MANIFEST.in pytest.ini conftest.py
manage.py wsgi.py tasks.py fabfile.py environment.yml .flake8 .pylintrc pylintrc
.coveragerc .python-version .readthedocs.yaml mypy.ini runtime.txt app.spec python.spec
nginx.spec package.json package-lock.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml
bun.lockb lerna.json nx.json turbo.json tsconfig.json jsconfig.json webpack.config.js
vite.config.ts rollup.config.mjs babel.config.js jest.config.cjs .babelrc .eslintrc
.eslintrc.json .eslintignore .prettierrc .prettierignore .npmrc .npmignore .nvmrc
.node-version .yarnrc .yarnrc.yml .browserslistrc .swcrc .mocharc.json .stylelintrc
Gruntfile.js gulpfile.js bower.json deno.json deno.lock index.html server.js Gemfile
Gemfile.lock Rakefile Guardfile Capfile config.ru .rubocop.yml .rspec .ruby-version
.irbrc rails.gemspec Appraisals Dangerfile Thorfile Steepfile Berksfile Brewfile Podfile
Podfile.lock Cartfile Mintfile Package.swift Package.resolved Fastfile Appfile Matchfile
.swiftlint.yml composer.json composer.lock phpunit.xml phpunit.xml.dist artisan
.php-cs-fixer.php mix.exs mix.lock .formatter.exs rebar.config rebar.lock erlang.mk
gleam.toml elm.json dune dune-project dune-workspace core.opam stack.yaml cabal.project
hie.yaml Setup.hs pandoc.cabal package.yaml shell.nix default.nix flake.nix flake.lock
dub.json dub.sdl nimble.nimble shard.yml pubspec.yaml analysis_options.yaml Project.toml
Manifest.toml DESCRIPTION NAMESPACE .Rbuildignore renv.lock cpanfile dist.ini META6.json
Build.PL Directory.Build.props global.json nuget.config App.sln paket.dependencies
paket.lock build.cake Snakefile nextflow.config main.nf Dockerfile Dockerfile.dev
dev.Dockerfile Containerfile .dockerignore docker-compose.yml compose.yaml
docker-bake.hcl Procfile Procfile.dev app.json heroku.yml fly.toml vercel.json
netlify.toml Caddyfile nginx.conf Vagrantfile Tiltfile Earthfile skaffold.yaml
Chart.yaml values.yaml kustomization.yaml main.tf terraform.tfvars Pulumi.yaml
serverless.yml Jenkinsfile .travis.yml .gitlab-ci.yml azure-pipelines.yml appveyor.yml
.drone.yml bitbucket-pipelines.yml cloudbuild.yaml codecov.yml renovate.json
.pre-commit-config.yaml .mergify.yml sonar-project.properties lefthook.yml .lintstagedrc
.editorconfig .gitignore .gitattributes .gitmodules .mailmap .clang-format .clang-tidy
.clangd .cirrus.yml .envrc .env .env.example .tool-versions .vimrc .tmux.conf .zshrc
.htaccess .hgignore .ctags .gdbinit .lldbinit bin/deploy bin/console bin/rails
script/bootstrap script/test scripts/run scripts/release tools/lint hack/update-all
debian/control debian/rules debian/changelog debian/copyright ci/run etc/profile
libexec/git-core .husky/pre-commit .github/CODEOWNERS .github/workflows/ci.yml
.circleci/config.yml .devcontainer/devcontainer.json contrib/completion/_git
Release·Notes my·notes.txt Read·Me.md User·Guide.pdf.txt docs/Getting·started Q&A.md
C#.md LIESMICH ЧИТАЙМЕНЯ.txt 说明 说明.md LÉEME naïve.conf größe données/modèle.py
100-days notes+ideas.txt a,b.csv x=y.env (draft).md [id].tsx {{name}}.py $page.ts
foo@2x.svg 2024-01-01-post.md 1.0.0.txt 00-README _vimrc __init__.py index.d.ts
x.tar.gz.sig
"""
NAMES = [word.replace("·", " ") for word in _WORDS.split()]
"""A dot in the middle stands for a space."""
