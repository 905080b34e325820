// exit 0
// flags --no-summary
// prints nothing
export default function () {}
