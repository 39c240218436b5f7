export default {
  files: ['dist/test/**/*.test.js'],
  require: ['./dist/test/support/seed.js'],
  nodeArguments: ['--enable-source-maps'],
  timeout: '5m',
}
