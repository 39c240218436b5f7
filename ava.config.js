import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Seconds of each file: from the last runs of `npm test` in this tree, else the committed ones from
 * `npm test -- --keep-times`. New files count as long.
 */
const read = (path) => {
  const url = new URL(path, import.meta.url)
  return existsSync(url) ? JSON.parse(readFileSync(url, 'utf8')) : {}
}
const seconds = {
  ...read('test/runner/seconds.json'),
  ...read('dist/.build/test-times.json'),
  ...(process.env.TEST_ROOMS === undefined ? {} : read(process.env.TEST_ROOMS)),
}
const root = fileURLToPath(new URL('.', import.meta.url))
const secondsOf = (file) => seconds[relative(root, file)] ?? Number.MAX_VALUE

export default {
  files: ['dist/test/**/*.test.js'],
  require: ['source-maps', 'room', 'seed'].map((name) => `./dist/test/support/${name}.js`),
  timeout: '5m',
  // The longest first: none of them runs alone at the end.
  sortTestFiles: (a, b) => secondsOf(b) - secondsOf(a) || (a < b ? -1 : 1),
  // Processes, no threads: native modules (uWebSockets.js, argon2) end a whole process when one of
  // its threads is taken down while they work.
  workerThreads: false,
}
