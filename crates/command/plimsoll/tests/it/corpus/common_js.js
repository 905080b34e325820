// exit 107
// says use `import`
// not in k6: it runs such scripts
const http = require('k6/http');
export default function () { http.get(__ENV.URL); }
