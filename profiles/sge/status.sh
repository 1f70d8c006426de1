#!/usr/bin/env bash
# The state of a job of Grid Engine in the words of cluster-generic. If it does not answer, the job counts as running.
# qstat forgets a job at its end, and qacct has it some seconds later, once for each time that it was started.
if job=$(qstat -j "$1" 2> /dev/null); then
  grep -q "^error reason" <<< "$job" && echo failed || echo running
elif job=$(qacct -j "$1" 2> /dev/null); then
  awk '$1 == "failed" {ended = $2} $1 == "exit_status" {ended += $2} END {print ended ? "failed" : "success"}' <<< "$job"
else
  echo running
fi
