// exit 107
// says in a user
if (__VU > 0) throw new Error('in a user');

export default function () {}
