module known-capacity

go 1.22
