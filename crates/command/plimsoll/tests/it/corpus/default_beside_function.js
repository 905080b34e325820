// exit 104
// says default
export default 5;

export function other() {}
