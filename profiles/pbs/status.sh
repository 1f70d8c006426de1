#!/usr/bin/env bash
# The state of a job of PBS in the words of cluster-generic. If PBS does not answer, the job counts as running.
# The server must remember ended jobs (job_history_enable). Torque does so without -x.
qstat -x -f "$1" 2> /dev/null | awk '
  $1 == "job_state" {state = $3}
  tolower($1) == "exit_status" {status = $3}
  END {print state !~ /^[FC]$/ ? "running" : status == "0" ? "success" : "failed"}'
