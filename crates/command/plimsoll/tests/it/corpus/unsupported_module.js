// exit 107
// says k6/browser
// not in k6: it has a browser
import { browser } from 'k6/browser';
export default function () { browser.newPage(); }
