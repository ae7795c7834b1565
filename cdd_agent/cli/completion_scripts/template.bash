# Completes cdd in bash 3.2 and later. `cdd completion bash` prints this script.

_cdd_flags() { # COMMAND
  case "$1" in
    @FLAGS@
  esac
}

_cdd_takes_value() { # FLAG
  case "$1" in
    @FLAGS_WITH_VALUES@) return 0 ;;
  esac
  return 1
}

_cdd_values() { # COMMAND FLAG, or COMMAND and the number of the argument
  case "$1 $2" in
    @VALUES@
  esac
}

_cdd_add() { # WORD
  [[ $1 == "$word"* ]] && COMPREPLY+=("$1")
}

_cdd() {
  local word=${COMP_WORDS[COMP_CWORD]} command='' flag='' folder='' place=0
  local typed offers offer name number
  for ((number = 1; number < COMP_CWORD; number++)); do
    typed=${COMP_WORDS[number]}
    if [[ -n $flag ]]; then
      # `--flag=value` is three words
      [[ $typed == = ]] && continue
      [[ $flag == -C || $flag == --project ]] && folder=$typed
      flag=''
    elif [[ $typed == -* ]]; then
      _cdd_takes_value "$typed" && flag=$typed
    elif [[ -z $command ]]; then
      command=$typed
    else
      place=$((place + 1))
    fi
  done
  if [[ -n $flag ]]; then
    [[ $word == = ]] && word=''
    offers=$(_cdd_values "$command" "$flag")
  elif [[ $word == -* ]]; then
    offers=$(_cdd_flags "$command")
  else
    offers=$(_cdd_values "$command" "$place")
  fi
  COMPREPLY=()
  for offer in $offers; do
    case $offer in
      @tickets)
        # no `compgen -W`: it would run a `$(...)` in the name of a folder
        while IFS=$'\t' read -r name _; do
          printf -v name %q "$name"
          _cdd_add "$name"
        done < <(cdd ${folder:+-C "$folder"} completion tickets 2>/dev/null)
        ;;
      @files | @folders)
        compopt -o filenames 2>/dev/null
        while IFS= read -r name; do
          COMPREPLY+=("$name")
        done < <(
          if [[ $offer == @files ]]; then
            compgen -f -- "$word"
          else
            compgen -d -- "$word"
          fi
        )
        ;;
      *) _cdd_add "$offer" ;;
    esac
  done
}

complete -F _cdd cdd
