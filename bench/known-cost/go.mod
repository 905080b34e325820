module known-cost

go 1.22
