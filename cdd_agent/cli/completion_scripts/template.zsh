#compdef cdd
# Completes cdd in zsh. `cdd completion zsh` prints this script.

_cdd_tickets() {
  local folder=${opt_args[-C]:-${opt_args[--project]:-$cdd_folder}} line
  local -a found options
  [[ -n $folder ]] && options=(-C ${(Q)folder})
  for line in ${(f)"$(cdd $options completion tickets 2>/dev/null)"}; do
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  _describe -t tickets ticket found
}

_cdd_offer() { # words and sources
  local offer
  local -a words_offered
  for offer in "$@"; do
    case $offer in
      @tickets) _cdd_tickets ;;
      @files) _files ;;
      @folders) _files -/ ;;
      *) words_offered+=("$offer") ;;
    esac
  done
  (( $#words_offered )) && compadd -a words_offered
}

_cdd() {
  local context state state_descr line curcontext=$curcontext cdd_folder
  typeset -A opt_args
  local -a commands
  commands=(
    @COMMANDS@
  )
  _arguments -C \
    @FLAGS@ \
    '(-)1:command:->command' \
    '(-)*::argument:->arguments'
  cdd_folder=${opt_args[-C]:-${opt_args[--project]}}
  case $state in
    command) _describe -t commands command commands ;;
    arguments)
      case $words[1] in
        @CASES@
      esac
      ;;
  esac
}

if [[ $funcstack[1] == _cdd ]]; then
  _cdd "$@"
else
  compdef _cdd cdd
fi
