mod authenticator;
mod records;
mod secrets;
