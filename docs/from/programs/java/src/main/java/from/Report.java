package from;

import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import net.javacrumbs.shedlock.core.DefaultLockingTaskExecutor;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.LockingTaskExecutor.Task;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/** Writes the nightly report on one replica only, under a lock of ShedLock. */
public class Report {
    public static void main(String[] args) throws Throwable {
        URI address = URI.create("redis://" + args[0]);
        LettuceConnectionFactory redis = new LettuceConnectionFactory(address.getHost(), address.getPort());
        redis.afterPropertiesSet();
        redis.start();
        try {
            LockProvider locks = new RedisLockProvider(redis, "shop");
            new DefaultLockingTaskExecutor(locks).executeWithLock(
                    (Task) () -> write(redis),
                    new LockConfiguration(Instant.now(), "report", Duration.ofMinutes(10), Duration.ofSeconds(30)));
        } finally {
            redis.destroy();
        }
    }

    static void write(LettuceConnectionFactory redis) {
        new StringRedisTemplate(redis).opsForValue().increment("reports");
    }
}
