/** Target 21: the solver of the client library, compared with one `createHash` per try. */
import { createHash, randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Search } from '../../runtime/clients/client/search.js'
import { solve } from '../../runtime/clients/client/solver.js'
import { compare, publish, repeat } from '../harness.js'

const RANGE = 50_000
const IMPOSSIBLE_BITS = 32
const token = () => randomBytes(32).toString('base64url')
const challengeToken = token()
let nonce = 10_000_000

function searchFor(ms: number) {
  const search = new Search(token(), IMPOSSIBLE_BITS)
  const end = performance.now() + ms
  let operations = 0
  while (performance.now() < end) {
    search.first(10_000_000 + operations, RANGE)
    operations += RANGE
  }
  return { operations }
}

async function solveFor(ms: number) {
  let operations = 0
  const signal = AbortSignal.timeout(ms)
  const onProgress = (tried: number) => {
    operations = tried
  }
  const options = { challengeToken: token(), difficultyBits: IMPOSSIBLE_BITS, signal, onProgress }
  await solve(options).catch(() => {})
  return { operations }
}

await publish(
  await compare({
    name: 'proof-of-work tries',
    reference: {
      name: 'createHash per try',
      run: (ms) =>
        repeat(ms, () => createHash('sha256').update(`${challengeToken}:${nonce++}`).digest()),
    },
    contenders: [
      { name: 'the search, one thread', target: 3, run: searchFor },
      { name: `solve on ${availableParallelism()} threads, start included`, run: solveFor },
    ],
  }),
)
