// exit 107
// says thrown while loading
throw new Error('thrown while loading');
export default function () {}
