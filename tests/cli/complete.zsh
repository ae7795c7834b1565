# Prints the completions of a line: zsh -f complete.zsh SCRIPT LINE
# zsh completes only in a terminal, so an inner zsh runs in one.
zmodload zsh/zpty
hits=$(mktemp)
setup=$(mktemp)
cat >$setup <<'SETUP'
PROMPT=
unsetopt beep
autoload -Uz compinit && compinit -u -D
source $COMPLETION_SCRIPT
compadd() {
  # with -O, -A or -D it only computes
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a found
  builtin compadd -A found "$@"
  (( $#found )) && print -rl -- ${(Q)found} >>$HITS
  builtin compadd "$@"
}
zle -C probe complete-word _generic
probe-line() { zle probe; print -r -- @done >>$HITS }
zle -N probe-line
bindkey '^I' probe-line
print -r -- @ready >>$HITS
SETUP
export COMPLETION_SCRIPT=$1 HITS=$hits
wait_for() {
  repeat 3000; do
    grep -q -- "^$1\$" $hits && return
    sleep 0.02
  done
  print "no $1" >&2
  exit 1
}
zpty inner zsh -f -i
zpty -w inner "source $setup"
wait_for @ready
zpty -n -w inner "$2"$'\t'
wait_for @done
zpty -d inner
grep -v '^@' $hits
rm -f $hits $setup
