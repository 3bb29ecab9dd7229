# Keeps the PostgreSQL that tests share: keeper <dir> <postgres> <arguments...>
# Every process that uses it has a file in users/ named by its process id. When the last one has been
# gone for 10 seconds (the pause between two test packages that are compiled), the door is shut; a round
# later, if nobody came in meanwhile, the instance is ended and its directory removed.
dir=$1; shift
cd "$dir" || exit 1
"$@" >postgres.log 2>&1 &
postgres=$!
idle=0
while kill -0 $postgres 2>/dev/null; do
  users=
  for file in users/*; do
    user=${file##*/}
    if [ "$user" != '*' ]; then
      # kill -0 fails for processes of another user, which root's are for us; /proc knows them.
      if kill -0 "$user" 2>/dev/null || [ -d "/proc/$user" ]; then users=1; else rm -f "$file"; fi
    fi
  done
  if [ -n "$users" ]; then
    idle=0
    [ -e open ] || : >open
  elif [ $idle -lt 10 ]; then
    idle=$((idle + 1))
  elif [ -e open ]; then
    rm -f open
  else
    break
  fi
  sleep 1
done
kill -QUIT $postgres 2>/dev/null
wait $postgres
cd / && rm -rf "$dir"
