// exit 104
// says default
export function other() {}
