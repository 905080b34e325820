module collect

go 1.23
