// Called once in each runtime, before the script: refuses calls of functions of the engine that nothing could interrupt.
(ofArrays, mostElements, ofStrings, mostComparisons) => {
  const { apply, defineProperty } = { apply: Reflect.apply, defineProperty: Object.defineProperty };
  // Scripts may replace these.
  const { isArray } = Array;
  const { isConcatSpreadable } = Symbol;
  const bound = (prototype, names, check) => {
    for (const name of names) {
      const original = prototype[name];
      const { [name]: value } = {
        [name](...given) {
          check(this, given, name);
          return apply(original, this, given);
        },
      };
      defineProperty(prototype, name, { value, writable: true, enumerable: false, configurable: true });
    }
  };
  const checkElements = (elements) => {
    if (elements > mostElements) {
      throw new RangeError(`expected an array of at most ${mostElements} elements, found one of ${elements}`);
    }
  };
  // The elements so far with those of one more array.
  const withElements = (elements, array) => {
    const length = +array.length;
    checkElements(length);
    const all = length > 0 ? elements + length : elements;
    if (all > mostElements) {
      throw new RangeError(`expected arrays of at most ${mostElements} elements in all, found ${all}`);
    }
    return all;
  };
  const isSpread = (value) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) {
      return false;
    }
    const wanted = value[isConcatSpreadable];
    return wanted === undefined ? isArray(value) : !!wanted;
  };
  const withNested = (before, array, depth) => {
    let elements = before;
    for (let i = 0; depth >= 1 && i < array.length; i++) {
      const value = array[i];
      // Most elements are no objects, of which this is known at less cost.
      if (typeof value === 'object' && isArray(value)) {
        elements = withNested(withElements(elements, value), value, depth - 1);
      }
    }
    return elements;
  };
  // These go through other arrays, too. A loop by index calls nothing that a script may replace.
  const ofOthers = {
    __proto__: null,
    concat(_, given) {
      let elements = 0;
      for (let i = 0; i < given.length; i++) {
        if (isSpread(given[i])) {
          elements = withElements(elements, given[i]);
        }
      }
    },
    flat(array, given) {
      withNested(0, array, given[0] === undefined ? 1 : +given[0]);
    },
    flatMap(_, given) {
      const callback = given[0];
      if (typeof callback !== 'function') {
        return;
      }
      let elements = 0;
      given[0] = (element, index, array) => {
        const made = apply(callback, given[1], [element, index, array]);
        if (isArray(made)) {
          elements = withElements(elements, made);
        }
        return made;
      };
    },
  };
  bound(Array.prototype, ofArrays, (array, given, name) => {
    if (array == null) {
      return;
    }
    checkElements(array.length);
    const check = ofOthers[name];
    if (check !== undefined) {
      check(array, given);
    }
  });
  bound(String.prototype, ofStrings, (text, [sought]) => {
    if (typeof sought === 'string' && text != null && text.length * sought.length > mostComparisons) {
      throw new RangeError(
        `expected a shorter text to look for: ${sought.length} characters in ${text.length} may take too long`,
      );
    }
  });
};
