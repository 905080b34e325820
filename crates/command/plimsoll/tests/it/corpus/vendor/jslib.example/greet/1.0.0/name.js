exports.name = 'world';
