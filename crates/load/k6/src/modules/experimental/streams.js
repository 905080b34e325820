// Readable streams with a default controller: https://streams.spec.whatwg.org, section 4.
(() => {
  'use strict';

  // The state of a stream, of its queue and of its reader. Scripts see it only through the classes below.
  class Core {
    phase = 'readable'; // then `closed` or `errored`
    error = undefined;
    reader = null;
    queue = []; // chunks with their sizes
    total = 0;
    isStarted = false;
    isEnding = false; // close() was called, and chunks are left
    isPulling = false;
    pullsAgain = false;

    constructor(source, highWaterMark, sizeOf) {
      Object.assign(this, { source, highWaterMark, sizeOf });
      this.controller = new ReadableStreamDefaultController(key, this);
      const started = source.start?.call(source.object, this.controller);
      Promise.resolve(started).then(() => {
        this.isStarted = true;
        this.pullIfWanted();
      }, (error) => this.fail(error));
    }

    get desiredSize() {
      if (this.phase === 'errored') return null;
      return this.phase === 'closed' ? 0 : this.highWaterMark - this.total;
    }

    get takesChunks() {
      return this.phase === 'readable' && !this.isEnding;
    }

    pullIfWanted() {
      const isWanted = this.reader?.requests.length > 0 || this.desiredSize > 0;
      if (!this.takesChunks || !this.isStarted || !isWanted) return;
      if (this.isPulling) {
        this.pullsAgain = true;
        return;
      }
      this.isPulling = true;
      const pull = async () => this.source.pull?.call(this.source.object, this.controller);
      pull().then(() => {
        this.isPulling = false;
        if (this.pullsAgain) {
          this.pullsAgain = false;
          this.pullIfWanted();
        }
      }, (error) => this.fail(error));
    }

    enqueue(value) {
      if (!this.takesChunks) throw new TypeError('a stream that is closed takes no more chunks');
      if (this.reader?.requests.length > 0) {
        this.reader.requests.shift().resolve({ value, done: false });
      } else {
        this.keep(value);
      }
      this.pullIfWanted();
    }

    keep(value) {
      try {
        const { sizeOf } = this;
        const size = Number(sizeOf(value));
        if (!(size >= 0 && size < Infinity)) throw new RangeError(`expected the size of a chunk, found ${size}`);
        this.queue.push({ value, size });
        this.total += size;
      } catch (error) {
        this.fail(error);
        throw error;
      }
    }

    end() {
      if (!this.takesChunks) throw new TypeError('the stream is closed already');
      this.isEnding = true;
      if (this.queue.length === 0) this.close();
    }

    close() {
      this.phase = 'closed';
      this.reader?.settle((request) => request.resolve({ value: undefined, done: true }), (closed) => closed.resolve());
    }

    fail(error) {
      if (this.phase !== 'readable') return;
      Object.assign(this, { phase: 'errored', error, queue: [], total: 0 });
      this.reader?.settle((request) => request.reject(error), (closed) => closed.reject(error));
    }

    async read(reader) {
      if (this.phase === 'errored') throw this.error;
      if (this.phase === 'closed') return { value: undefined, done: true };
      if (this.queue.length === 0) {
        const request = Promise.withResolvers();
        reader.requests.push(request);
        this.pullIfWanted();
        return request.promise;
      }
      const { value, size } = this.queue.shift();
      this.total -= size;
      if (this.isEnding && this.queue.length === 0) this.close(); else this.pullIfWanted();
      return { value, done: false };
    }

    async cancel(reason) {
      if (this.phase === 'errored') throw this.error;
      if (this.phase === 'closed') return;
      this.close();
      Object.assign(this, { queue: [], total: 0 });
      await this.source.cancel?.call(this.source.object, reason);
    }
  }

  // The side of a stream on which chunks are waited for.
  class Lock {
    requests = [];
    closed = Promise.withResolvers();

    constructor(core) {
      this.core = core;
      core.reader = this;
      // Who looks at none of these promises must not see an error.
      this.closed.promise.catch(() => {});
      if (core.phase === 'closed') this.closed.resolve();
      if (core.phase === 'errored') this.closed.reject(core.error);
    }

    settle(tellRequest, tellClosed) {
      this.requests.splice(0).forEach(tellRequest);
      tellClosed(this.closed);
    }

    release() {
      const error = new TypeError('the reader has released its stream');
      this.requests.splice(0).forEach((request) => request.reject(error));
      this.closed.reject(error);
      this.closed = Promise.withResolvers();
      this.closed.promise.catch(() => {});
      this.closed.reject(error);
      this.core.reader = null;
      this.core = null;
    }
  }

  // Only code in here can make a controller.
  const key = Symbol('controller');
  let coreOf;

  class ReadableStreamDefaultController {
    #core;

    constructor(given, core) {
      if (given !== key) throw new TypeError('a controller is made by its stream');
      this.#core = core;
    }

    get desiredSize() {
      return this.#core.desiredSize;
    }

    enqueue(chunk) {
      this.#core.enqueue(chunk);
    }

    close() {
      this.#core.end();
    }

    error(error) {
      this.#core.fail(error);
    }
  }

  class ReadableStream {
    #core;

    static {
      coreOf = (stream) => (typeof stream === 'object' && stream !== null && #core in stream ? stream.#core : null);
    }

    constructor(source = {}, strategy = {}) {
      this.#core = new Core(readSource(source), ...readStrategy(strategy ?? {}));
    }

    get locked() {
      return this.#core.reader !== null;
    }

    async cancel(reason) {
      if (this.locked) throw new TypeError('the stream has a reader, which alone can cancel it');
      return this.#core.cancel(reason);
    }

    getReader(options) {
      if (options?.mode !== undefined) throw new TypeError(`the mode \`${options.mode}\` of readers is not supported`);
      return new ReadableStreamDefaultReader(this);
    }
  }

  class ReadableStreamDefaultReader {
    #lock;

    constructor(stream) {
      const core = coreOf(stream);
      if (core === null) throw new TypeError('expected a ReadableStream to read from');
      if (core.reader !== null) throw new TypeError('the stream has a reader already');
      this.#lock = new Lock(core);
    }

    get closed() {
      return this.#lock.closed.promise;
    }

    async read() {
      return this.#held().read(this.#lock);
    }

    async cancel(reason) {
      return this.#held().cancel(reason);
    }

    releaseLock() {
      if (this.#lock.core !== null) this.#lock.release();
    }

    #held() {
      if (this.#lock.core === null) throw new TypeError('the reader has released its stream');
      return this.#lock.core;
    }
  }

  class CountQueuingStrategy {
    constructor(options) {
      const { highWaterMark } = options;
      if (highWaterMark === undefined || highWaterMark === null) throw new TypeError('expected { highWaterMark }');
      Object.defineProperty(this, 'highWaterMark', { value: highWaterMark, enumerable: true });
      Object.defineProperty(this, 'size', { value: () => 1, enumerable: true });
    }
  }

  function readSource(object) {
    if ((typeof object !== 'object' && typeof object !== 'function') || object === null) {
      throw new TypeError('expected an object as the source of a stream');
    }
    if (object.type !== undefined) {
      const error = new Error(`streams of the type \`${object.type}\` are not supported`);
      error.name = 'NotSupportedError';
      throw error;
    }
    const source = { object };
    for (const name of ['start', 'pull', 'cancel']) {
      if (object[name] !== undefined && typeof object[name] !== 'function') {
        throw new TypeError(`expected a function as \`${name}\` of the source`);
      }
      source[name] = object[name];
    }
    return source;
  }

  function readStrategy({ highWaterMark = 1, size = () => 1 }) {
    if (typeof size !== 'function') throw new TypeError('expected a function as `size` of the strategy');
    if (!(Number(highWaterMark) >= 0)) throw new RangeError('expected 0 or more as `highWaterMark` of the strategy');
    return [Number(highWaterMark), size];
  }

  return { CountQueuingStrategy, ReadableStream, ReadableStreamDefaultReader };
})()
