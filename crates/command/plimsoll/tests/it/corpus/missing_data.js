// exit 107
// says cannot read `handle_sumary.js`
// says did you mean `handle_summary.js`?
// says missing_data.js:6
// beside handle_summary.js
const text = open('./handle_sumary.js');
export default function () { text(); }
