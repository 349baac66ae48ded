// Threads that take turns with those of other processes.

package holdfast.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** Contention is a number of threads that acquire, stay a moment, release, and rest. */
final class Contention {
    /** Turn is one way to acquire something; what it returns gives it back. */
    private interface Turn {
        Runnable take() throws Exception;
    }

    private final Turn turn;
    private final Guard guard;
    private final long weight;
    private final long room;
    private final int threads;
    private final AtomicLong turns;
    private final long until;
    private final long rest;
    private final long stay;
    private final AtomicLong worst = new AtomicLong();
    private final AtomicLong granted = new AtomicLong();

    private Contention(Turn turn, String[] args) throws Exception {
        this.turn = turn;
        guard = new Guard(args[2]);
        weight = Long.parseLong(args[3]);
        room = Long.parseLong(args[4]);
        threads = Integer.parseInt(args[5]);
        turns = new AtomicLong(Long.parseLong(args[6]));
        until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Long.parseLong(args[7]));
        rest = TimeUnit.MICROSECONDS.toNanos(Long.parseLong(args[8]));
        stay = TimeUnit.MICROSECONDS.toNanos(Long.parseLong(args[9]));
    }

    /** KIND NAME GUARD WEIGHT ROOM THREADS TURNS MILLIS REST STAY, the last two in us; REST is the most. */
    static Contention of(RedissonClient client, String[] args) throws Exception {
        return new Contention(turn(client, args[0], args[1]), args);
    }

    private static Turn turn(RedissonClient client, String kind, String name) {
        switch (kind) {
            case "semaphore":
                RSemaphore semaphore = client.getSemaphore(name);
                return () -> {
                    semaphore.acquire();
                    return semaphore::release;
                };
            case "permits":
                RPermitExpirableSemaphore permits = client.getPermitExpirableSemaphore(name);
                return () -> {
                    String id = permits.acquire(1, TimeUnit.MINUTES);
                    return () -> permits.release(id);
                };
            default:
                return () -> {
                    var lock = Commands.lockOf(client, kind, name);
                    lock.lock();
                    return lock::unlock;
                };
        }
    }

    /** Returns how many turns there were, and the longest wait for one, in us. */
    String run() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            all.add(pool.submit(this::take));
        }
        for (Future<?> one : all) {
            one.get();
        }
        pool.shutdown();
        return granted + " " + TimeUnit.NANOSECONDS.toMicros(worst.get());
    }

    private Void take() throws Exception {
        while (turns.getAndDecrement() > 0 && System.nanoTime() < until) {
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(rest + 1));
            long asked = System.nanoTime();
            Runnable giveBack = turn.take();
            long waited = System.nanoTime() - asked;
            guard.enter(weight, room);
            LockSupport.parkNanos(stay);
            guard.leave(weight);
            giveBack.run();
            granted.incrementAndGet();
            worst.accumulateAndGet(waited, Math::max);
        }
        return null;
    }
}
