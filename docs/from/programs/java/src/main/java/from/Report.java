package from;

import java.time.Duration;
import java.time.Instant;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.LockingTaskExecutor.Task;
import net.javacrumbs.shedlock.provider.redis.jedis4.JedisLockProvider;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;

/** Writes the nightly report on one replica only, under a lock of ShedLock. */
public class Report {
    public static void main(String[] args) throws Throwable {
        try (JedisPool redis = new JedisPool("redis://" + args[0])) {
            LockProvider locks = new JedisLockProvider(redis, "shop");
            new DefaultLockingTaskExecutor(locks).executeWithLock(
                    (Task) () -> write(redis),
                    new LockConfiguration(Instant.now(), "report", Duration.ofMinutes(10), Duration.ofSeconds(30)));
        }
    }

    static void write(JedisPool redis) {
        try (Jedis jedis = redis.getResource()) {
            jedis.incr("reports");
        }
    }
}
