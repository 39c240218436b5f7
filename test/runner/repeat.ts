/** Runs that are repeated while other processes take the processors: how a test that sometimes fails is found, and proved fixed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

const BUSY_PROCESSES = 2
/** It ends with the runner, also where that is killed. */
const LOOP = 'while (process.ppid === Number(process.argv[1]));'

/**
 * @param run one run. @returns the failures.
 * @param say receives a line for each run, and the sum.
 * @returns how many runs failed.
 */
export async function repeat(
  { count, isBusy }: { readonly count: number; readonly isBusy: boolean },
  run: (number: number) => Promise<readonly string[]>,
  say: (line: string) => void,
): Promise<number> {
  let failedRuns = 0
  for (let number = 1; number <= count; number += 1) {
    const busy = isBusy ? startBusy() : []
    try {
      const failures = await run(number)
      if (failures.length > 0) failedRuns += 1
      say(`run ${number} of ${count}: ${failures.length === 0 ? 'passed' : 'failed'}`)
    } finally {
      await Promise.all(busy.map(ended))
    }
  }
  say(
    `${failedRuns} of ${count} runs failed${isBusy ? `, with ${BUSY_PROCESSES} busy processes` : ''}`,
  )
  return failedRuns
}

/** A run begins when the busy processes of the one before it are gone. */
async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

function startBusy(): ChildProcess[] {
  return Array.from({ length: BUSY_PROCESSES }, () =>
    spawn(process.execPath, ['-e', LOOP, String(process.pid)], { stdio: 'ignore' }),
  )
}
