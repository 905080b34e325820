// exit 104
// says function `default`, found only `other`
export function other() {}
