//! Every test that needs more than one piece of the program, in one binary: it links once.

mod support {
    pub mod server;
}

mod live {
    mod apache;
}

mod readme;
mod story_mysql;
