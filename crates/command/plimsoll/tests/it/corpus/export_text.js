// exit 255
// says exports a function
module.exports = 'no functions';
