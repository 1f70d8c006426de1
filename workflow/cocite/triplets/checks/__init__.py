"""What can be told of sets of triplets and of the neighbours they are drawn from, before anything is trained."""
