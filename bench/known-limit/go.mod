module known-limit

go 1.22
