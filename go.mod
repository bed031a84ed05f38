module tracelake

go 1.26
