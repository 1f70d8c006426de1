#!/usr/bin/env bash
# The state of a job of Grid Engine in the words of cluster-generic. If it does not answer, the job counts as running.
# qstat forgets a job at its end, and qacct has it some seconds later, once for each time that it was started. A job that
# was deleted while it waited is in neither: after two minutes it counts as failed.
gone=.snakemake/sge-$1.gone
if job=$(qstat -j "$1" 2>&1); then
  grep -q "^error reason" <<< "$job" && echo failed || echo running
elif accounts=$(qacct -j "$1" 2> /dev/null); then
  awk '$1 == "failed" {bad = $2} $1 == "exit_status" {bad += $2} END {print bad ? "failed" : "success"}' <<< "$accounts"
elif grep -q "do not exist" <<< "$job" && ! find "$gone" -mmin -2 2> /dev/null | grep -q .; then
  [ -e "$gone" ] && echo failed || { touch "$gone" && echo running; }
else
  echo running
fi
