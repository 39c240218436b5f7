/**
 * A broker of the Kafka protocol in memory, and a consumer: kcat of librdkafka has both. No package of Debian or npm
 * has a broker that stores on disk.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

const run = promisify(execFile)
const READ_MS_MAX = 30_000

export interface KafkaMessage {
  readonly partition: number
  readonly offset: number
  readonly key: string
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
}

export interface KafkaBroker {
  readonly address: string
  /** Stops it (SIGSTOP): it accepts connections and bytes, and does not answer. */
  freeze(): void
  /** Ends `freeze` (SIGCONT). */
  thaw(): void
  /** All messages of a topic, in order within a partition. */
  messages(topic: string): Promise<readonly KafkaMessage[]>
  stop(): Promise<void>
}

/** @param path of kcat. @param topic is created. */
export async function startKafka(path: string, topic: string): Promise<KafkaBroker> {
  const mock = ['-X', 'test.mock.num.brokers=1', '-d', 'mock']
  const child = spawn(path, ['-P', '-b', 'mock', '-t', topic, ...mock], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const gone = once(child, 'exit')
  const address = await new Promise<string>((resolve, reject) => {
    const lines = createInterface(child.stderr)
    child.once('exit', () => reject(new Error('kcat has no broker')))
    let found = ''
    // Its lines are read to the end, or it waits for them.
    lines.on('line', (line) => {
      found = /bootstrap\.servers=(\S+)/.exec(line)?.[1] ?? found
      // It makes the topic after it has an address.
      if (line.includes(`Created topic "${topic}"`)) resolve(found)
    })
  })
  return {
    address,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async messages(of) {
      const { stdout } = await run(
        path,
        ['-C', '-b', address, '-t', of, '-o', 'beginning', '-e', '-q', '-J'],
        { timeout: READ_MS_MAX, maxBuffer: 64 * 1024 * 1024 },
      )
      return stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => {
          const { headers, ...message } = JSON.parse(line)
          return { ...message, headers: pairs(headers ?? []) }
        })
    },
    async stop() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

/** kcat prints headers as a flat list of names and values. */
function pairs(list: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at], list[2 * at + 1]]),
  )
}
