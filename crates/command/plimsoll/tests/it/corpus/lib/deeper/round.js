module.exports = { round: (number) => Math.round(number * 100) / 100 };
