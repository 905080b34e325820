// exit 107
// says outside the folders
// says allow its folder with `--files DIR`
// not in k6: it reads any file
const secret = open('/etc/hostname');
export default function () { console.log(secret); }
