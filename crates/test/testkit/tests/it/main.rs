//! The servers, asked by clients that share no code with the generator.

mod grpc;
mod http;
