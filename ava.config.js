export default {
  files: ['dist/test/**/*.test.js'],
  require: ['./dist/test/support/seed.js'],
  nodeArguments: ['--enable-source-maps'],
  timeout: '5m',
  // A process for each file: native modules (uWebSockets.js, argon2) end a whole process when one of
  // its threads is taken down while they work.
  workerThreads: false,
}
