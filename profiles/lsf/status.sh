#!/usr/bin/env bash
# The state of a job of LSF in the words of cluster-generic. If LSF does not answer, the job counts as running.
case $(bjobs -noheader -o stat "$1" 2> /dev/null) in
  DONE) echo success ;;
  EXIT | ZOMBI) echo failed ;;
  *) echo running ;;
esac
