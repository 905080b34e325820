module soak

go 1.22
