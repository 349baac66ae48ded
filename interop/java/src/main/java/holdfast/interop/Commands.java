// What the tests can have Redisson do.

package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Arrays;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** Commands are words of the line protocol. All times are in ms. */
final class Commands {
    private Commands() { }

    static Object run(RedissonClient client, String command, String[] args) throws Exception {
        if (command.equals("contend")) {
            return Contention.of(client, args).run();
        }
        int dot = command.indexOf('.');
        String kind = command.substring(0, dot);
        String verb = command.substring(dot + 1);
        return switch (kind) {
            case "semaphore" -> semaphore(client.getSemaphore(args[0]), verb, args);
            case "permits" -> permits(client.getPermitExpirableSemaphore(args[0]), verb, args);
            case "latch" -> latch(client.getCountDownLatch(args[0]), verb, args);
            default -> lock(lockOf(client, kind, args[0]), verb, args);
        };
    }

    /** Returns the lock of that kind and name. */
    static RLock lockOf(RedissonClient client, String kind, String name) {
        return switch (kind) {
            case "lock" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "multi" -> // names separated by commas
                client.getMultiLock(Arrays.stream(name.split(",")).map(client::getLock).toArray(RLock[]::new));
            case "spin" -> (RLock) Since.call(client, "getSpinLock", name); // 3.15
            case "fenced" -> (RLock) Since.call(client, "getFencedLock", name); // 3.19
            case "nonreentrant" -> (RLock) Since.call(client, "getNonReentrantLock", name); // 4.4
            default -> throw new UnsupportedOperationException(kind);
        };
    }

    private static Object lock(RLock lock, String verb, String[] args) throws Exception {
        switch (verb) {
            case "lock": // [LEASE]
                lock.lock(args.length > 1 ? number(args, 1) : -1, MILLISECONDS);
                return null;
            case "tryLock": // WAIT LEASE, which -1 leaves to the watchdog
                return lock.tryLock(number(args, 1), number(args, 2), MILLISECONDS);
            case "unlock":
                lock.unlock();
                return null;
            case "forceUnlock":
                return lock.forceUnlock();
            case "count":
                return lock.getHoldCount();
            case "remaining":
                return lock.remainTimeToLive();
            case "locked":
                return lock.isLocked();
            case "mine":
                return lock.isHeldByCurrentThread();
            case "token":
                return Since.call(lock, "getToken");
            case "lockToken":
                return Since.call(lock, "lockAndGetToken");
            case "tryToken":
                return Since.call(lock, "tryLockAndGetToken");
            default:
                throw new UnsupportedOperationException(verb);
        }
    }

    private static Object semaphore(RSemaphore semaphore, String verb, String[] args) throws Exception {
        int n = args.length > 1 ? (int) number(args, 1) : 1;
        switch (verb) {
            case "acquire": // [N]
                semaphore.acquire(n);
                return null;
            case "tryAcquire": // N WAIT
                return semaphore.tryAcquire(n, number(args, 2), MILLISECONDS);
            case "release": // [N]
                semaphore.release(n);
                return null;
            case "available":
                return semaphore.availablePermits();
            case "drain":
                return semaphore.drainPermits();
            case "set": // N
                return semaphore.trySetPermits(n);
            case "add": // N
                semaphore.addPermits(n);
                return null;
            default:
                throw new UnsupportedOperationException(verb);
        }
    }

    private static Object permits(RPermitExpirableSemaphore permits, String verb, String[] args) throws Exception {
        switch (verb) {
            case "acquire": // LEASE, -1 for ever
                return permits.acquire(number(args, 1), MILLISECONDS);
            case "tryAcquire": // WAIT LEASE
                return permits.tryAcquire(number(args, 1), number(args, 2), MILLISECONDS);
            case "release": // ID
                permits.release(args[1]);
                return null;
            case "tryRelease": // ID
                return permits.tryRelease(args[1]);
            case "update": // ID LEASE
                return permits.updateLeaseTime(args[1], number(args, 2), MILLISECONDS);
            case "available":
                return permits.availablePermits();
            case "set": // N
                return permits.trySetPermits((int) number(args, 1));
            case "add": // N
                permits.addPermits((int) number(args, 1));
                return null;
            case "setAll": // N; 3.24
                return Since.call(permits, "setPermits", (int) number(args, 1));
            case "acquired": // 3.24
                return Since.call(permits, "acquiredPermits");
            case "all": // 3.24
                return Since.call(permits, "getPermits");
            case "leaseOf": // ID; 3.33
                return Since.call(permits, "getLeaseTime", args[1]);
            default:
                throw new UnsupportedOperationException(verb);
        }
    }

    private static Object latch(RCountDownLatch latch, String verb, String[] args) throws Exception {
        switch (verb) {
            case "set": // N
                return latch.trySetCount(number(args, 1));
            case "countDown":
                latch.countDown();
                return null;
            case "count":
                return latch.getCount();
            case "await": // [WAIT]
                if (args.length > 1) {
                    return latch.await(number(args, 1), MILLISECONDS);
                }
                latch.await();
                return null;
            case "delete":
                return latch.delete();
            default:
                throw new UnsupportedOperationException(verb);
        }
    }

    private static long number(String[] args, int i) {
        return Long.parseLong(args[i]);
    }
}
