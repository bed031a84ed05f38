package collect

const isolation = "guard process: the whole tree of a job is ended and its memory is bounded"
