// exit 0
// flags --verbose
// says a detail
export default function () { console.debug('a detail'); }
